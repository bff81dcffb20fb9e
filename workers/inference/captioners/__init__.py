"""Captioners: a file for each architecture, and one protocol for all."""

from collections.abc import Mapping

from service.contract.formats.checkpoint_header import Architecture
from workers.inference.captioners.adaptive_attention import AdaptiveAttention
from workers.inference.captioners.bottom_up_top_down import BottomUpTopDown
from workers.inference.captioners.canonical import Canonical, Dropout
from workers.inference.captioners.init import Init
from workers.inference.captioners.merge import Merge
from workers.inference.captioners.par import Par
from workers.inference.captioners.pre import Pre
from workers.inference.captioners.protocol import Captioner, Search, State
from workers.inference.captioners.recurrent import Recurrent
from workers.inference.captioners.soft_attention import SoftAttention
from workers.inference.captioners.transformer import Transformer

ARCHITECTURES: Mapping[Architecture, type[Canonical]] = {
    "init": Init,
    "pre": Pre,
    "par": Par,
    "merge": Merge,
    "soft_attention": SoftAttention,
    "adaptive_attention": AdaptiveAttention,
    "bottom_up_top_down": BottomUpTopDown,
    "transformer": Transformer,
}

__all__ = ["ARCHITECTURES", "Canonical", "Captioner", "Dropout", "Recurrent", "Search", "State"]
