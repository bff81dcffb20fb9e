"""Probes: how far metrics can be trusted on a split."""

from collections.abc import Iterable
from typing import ClassVar

from pydantic import Field

from prescore.models.base import Answer
from prescore.models.runs import Oddity, Run

MEANINGS = {  # of rows' names
    "RvR": "people's captions against other people's",
    "SvR": "the captioner's against the same",
    "R1 unchanged": "people's first captions against their others, as they are",
    "single sentence": "one caption for all images",
}


def legend(names: Iterable[str]) -> str:
    """What rows' names mean that do not say it themselves, in one line; empty where all do."""
    said = [f"{name}: {MEANINGS[name]}" for name in dict.fromkeys(names) if name in MEANINGS]
    return "; ".join([*said, "in brackets: the difference from the first row"]) if said else ""


class ProbeRow(Answer):
    """Scores of captions that a probe made; `drop`: how far below those of the first row."""

    probe: str = ""
    name: str = ""
    share: float | None = None  # of tokens that were replaced
    scores: dict[str, float | None] = Field(default_factory=dict)
    drop: dict[str, float | None] = Field(default_factory=dict)
    sd: dict[str, float | None] = Field(default_factory=dict)
    text: str = ""
    note: str = ""
    signatures: dict[str, str] = Field(default_factory=dict)
    reason: str | None = None  # why there are no scores


class MetricHealth(Answer):
    """How far a metric can be trusted; None: not known.

    `constant`: the best single sentence against all references. `constant_of_human`: the same
    sentence against the references that people's captions have, as a share of `human`.
    """

    human: float | None = None
    human_of_range: float | None = None
    constant: float | None = None
    constant_of_range: float | None = None
    constant_of_human: float | None = None
    rare_of_human: float | None = None


class Probes(Run):
    PLACE: ClassVar[str] = "/v1/probes"

    probes: dict[str, tuple[ProbeRow, ...]] = Field(default_factory=dict)
    health: dict[str, MetricHealth] | None = None
    warnings: tuple[Oddity, ...] = ()
