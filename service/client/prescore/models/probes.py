"""Probes: scores that metrics give to captions of a known quality."""

from collections.abc import Iterable
from typing import Annotated, ClassVar

from pydantic import Field

from prescore.models.base import Answer, RunProblem, TupleOf
from prescore.models.identifiers import SAFE_ID, ProbesId, Timestamp
from prescore.models.metrics import MetricHealth
from prescore.models.runs import DatasetPinned, Oddity, Run, RunTask

MEANINGS = {  # of rows' names
    "RvR": "people's captions against other people's",
    "SvR": "the captioner's against the same",
    "R1 unchanged": "people's first captions against their others, as they are",
    "single sentence": "one caption for all images",
}


def legend(names: Iterable[str]) -> str:
    """Explain rows' names that do not say what they mean, in one line; empty where all do."""
    meanings = [f"{name}: {MEANINGS[name]}" for name in dict.fromkeys(names) if name in MEANINGS]
    return (
        "; ".join([*meanings, "in brackets: the difference from the first row"]) if meanings else ""
    )


class ProbeRow(Answer):
    """One row of a probe's table: scores, and how far they drop from the table's first row."""

    probe: str
    name: str
    share: float | None = Field(description="The share of tokens that were replaced.")
    scores: dict[str, float | None]
    drop: dict[str, float | None]
    sd: dict[str, float | None] = Field(
        description="The standard deviation, where scores are means."
    )
    signatures: dict[str, str]
    text: str = Field(description="The sentence, where the row scores a single one.")
    note: str
    reason: str | None = Field(description="Why there are no scores.")


class Probes(Run):
    """Probes of a dataset: a table for each probe that is done."""

    PLACE: ClassVar[str] = "/v1/probes"

    id: Annotated[ProbesId, SAFE_ID]
    dataset: DatasetPinned
    tasks: TupleOf[RunTask]
    probes: dict[str, TupleOf[ProbeRow]]
    health: dict[str, MetricHealth] | None = Field(description="null until all probes are done.")
    warnings: TupleOf[Oddity]
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None
