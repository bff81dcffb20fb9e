"""Correlation studies: how far pre-gen metrics tell post-gen metrics."""

from datetime import datetime
from typing import ClassVar

from pydantic import Field

from prescore.counts import counted
from prescore.models.base import Answer, Brief, Problem
from prescore.models.runs import Pinned, Progress, Run


class Correlation(Answer):
    """A pre-gen metric beside a post-gen metric: `r` over strata of images of all models,
    `spearman` over whole models.
    """

    place: int
    metric: str
    r: float | None = None
    r2: float | None = None
    p: float | None = None
    spearman: float | None = None
    spearman_p: float | None = None
    models: int = 0


class Correlated(Answer):
    """A post-gen metric, and the pre-gen metrics that correlate with it."""

    rows: int = 0
    of_images: float | None = None
    reason: str | None = None  # why there are no correlations
    correlations: tuple[Correlation, ...] = ()


class LeftOut(Answer):
    evaluation: str
    metric: str | None = None  # None: the whole evaluation is left out
    reason: str = ""


class Remaining(Answer):
    """How many pre-gen metrics are left, and why the others are not."""

    of: int = 0
    remain: int = 0
    infinite: int = 0
    constant: int = 0


class Study(Brief):
    idf: str = ""
    evaluations: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    rows: int = 0
    pregen: Remaining = Field(default_factory=Remaining)
    metrics: dict[str, Correlated] = Field(default_factory=dict)
    finished_at: datetime | None = None

    def facts(self) -> tuple[object, ...]:
        return counted(len(self.evaluations), "model"), *self.metrics


class StudyUnderWay(Answer):
    status: str
    progress: Progress | None = None
    error: Problem | None = None
    created_at: datetime | None = None


class Correlations(Brief):
    """A split's last study that has finished, and the one under way."""

    dataset: Pinned
    study: Study | None = None
    under_way: StudyUnderWay | None = None
    none_because: str | None = None

    def facts(self) -> tuple[object, ...]:
        return self.dataset, self.study or self.none_because or ""


class StudyRun(Run):
    PLACE: ClassVar[str] = "/v1/studies"

    idf: str = ""
    study: Study | None = None
