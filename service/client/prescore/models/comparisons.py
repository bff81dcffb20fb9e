"""Comparisons of two evaluations."""

from typing import ClassVar

from pydantic import Field

from prescore.models.base import Answer
from prescore.models.runs import Run


class Compared(Answer):
    """One metric of two evaluations; `difference` is a - b. None: not known, or infinite."""

    a: float | None
    b: float | None
    difference: float | None = None
    interval: tuple[float, float] | None = None
    p: float | None = None
    minimum_detectable: float | None = None


class Moved(Answer):
    """An image of two evaluations; `a` and `b` are their captions."""

    image: str
    a: str
    b: str
    scores: dict[str, Compared] = Field(default_factory=dict)


class Comparison(Run):
    PLACE: ClassVar[str] = "/v1/comparisons"

    a: str
    b: str
    scores: dict[str, Compared] = Field(default_factory=dict)
    images: tuple[Moved, ...] = ()
