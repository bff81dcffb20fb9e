"""Captioners: one architecture a file, one small protocol for all."""

from collections.abc import Mapping

from service.contract.checkpoint_header import Architecture
from workers.captioners.init import Init
from workers.captioners.merge import Merge
from workers.captioners.par import Par
from workers.captioners.pre import Pre
from workers.captioners.protocol import Captioner, State
from workers.captioners.recurrent import Dropout, Recurrent

ARCHITECTURES: Mapping[Architecture, type[Recurrent]] = {
    "init": Init,
    "pre": Pre,
    "par": Par,
    "merge": Merge,
}

__all__ = ["ARCHITECTURES", "Captioner", "Dropout", "Recurrent", "State"]
