"""Captioners: a file for each architecture, and one protocol for all."""

from collections.abc import Mapping

from service.contract.formats.checkpoint_header import Architecture
from workers.inference.captioners.init import Init
from workers.inference.captioners.merge import Merge
from workers.inference.captioners.par import Par
from workers.inference.captioners.pre import Pre
from workers.inference.captioners.protocol import Captioner, Search, State
from workers.inference.captioners.recurrent import Dropout, Recurrent

ARCHITECTURES: Mapping[Architecture, type[Recurrent]] = {
    "init": Init,
    "pre": Pre,
    "par": Par,
    "merge": Merge,
}

__all__ = ["ARCHITECTURES", "Captioner", "Dropout", "Recurrent", "Search", "State"]
