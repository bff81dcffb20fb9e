"""Captioners: a file for each architecture, and one protocol for all."""

from collections.abc import Mapping

from service.contract.formats.architectures import Architecture
from workers.inference.captioners.attention import (
    AdaptiveAttentionCaptioner,
    BottomUpTopDownCaptioner,
    SoftAttentionCaptioner,
)
from workers.inference.captioners.canonical import CanonicalCaptioner, DropoutRates
from workers.inference.captioners.protocol import Captioner, CaptionerState, GenerationOptions
from workers.inference.captioners.recurrent import (
    InitCaptioner,
    MergeCaptioner,
    ParCaptioner,
    PreCaptioner,
    RecurrentCaptioner,
)
from workers.inference.captioners.transformer import TransformerCaptioner

ARCHITECTURES: Mapping[Architecture, type[CanonicalCaptioner]] = {
    "init": InitCaptioner,
    "pre": PreCaptioner,
    "par": ParCaptioner,
    "merge": MergeCaptioner,
    "soft_attention": SoftAttentionCaptioner,
    "adaptive_attention": AdaptiveAttentionCaptioner,
    "bottom_up_top_down": BottomUpTopDownCaptioner,
    "transformer": TransformerCaptioner,
}

__all__ = [
    "ARCHITECTURES",
    "CanonicalCaptioner",
    "Captioner",
    "CaptionerState",
    "DropoutRates",
    "GenerationOptions",
    "RecurrentCaptioner",
]
