"""The ranking of a sweep's runs before they have ended."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from prescore.models.base import Answer, Brief, OpenEnum, TupleOf
from prescore.models.runs import DatasetPinned
from prescore.plain_text import format_count

Advice = Literal["keep", "stop", "ended"]
_RUN = ("run", "step", "percent", "early", "final", "expected")
SWEEP_COLUMNS = (*_RUN, "low", "high", "best", "advice")


class SweepRun(Answer, needs=("run",)):
    """A run of a sweep, with its prospects."""

    run: str = Field(description="Its label `run`.")
    step: float = Field(description="Its last step that was evaluated.")
    percent: float = Field(description="`step` as a share of its end.")
    early: float | None = Field(description="Its early score of `metric`.")
    final: float | None = Field(description="Its final score of the target; null before its end.")
    expected: float | None = Field(description="The final score that its early score foretells.")
    interval: tuple[float, float] | None = Field(description="95 %, of the final score.")
    best: float | None = Field(description="The probability that its final score is the best.")
    is_covered: bool | None = Field(
        description="False where `early` is far outside those of past trainings: then the run is "
        "kept, and foretold as if it were at the edge of them."
    )
    advice: Annotated[Advice, OpenEnum()] | None = Field(
        description="null where the answer is `not_yet`."
    )

    def cells(self) -> Iterator[object]:
        """Cells of the run's row in a table of SWEEP_COLUMNS."""
        yield from (getattr(self, name) for name in _RUN)
        yield from (*(self.interval or (None, None)), self.best, self.advice)


class SweepRanking(Brief, needs=("dataset", "target")):
    """The runs of a sweep, and those that can be stopped."""

    dataset: DatasetPinned
    labels: dict[str, str] = Field(description="Of the sweep's runs.")
    target: str = Field(description="The metric whose final score decides.")
    sure: float = Field(description="The least probability that the best run is kept.")
    average: int = Field(
        description="Number of checkpoints whose mean is an early, or a final, score."
    )
    percent: float | None = Field(description="Share of each run's steps up to which scores count.")
    usual_end: float | None = Field(
        description="The most usual last step of past trainings: the end of those runs that "
        "neither `steps` nor a label `steps` tells; null where none needs it."
    )
    past: int = Field(description="Number of trainings that have ended and tell how it goes on.")
    groups: int = Field(description="Number of their recipes; one without a recipe is its own.")
    left_out: dict[str, int] = Field(description="Trainings that are left out, by reason.")
    metric: str | None = Field(
        description="The metric whose early score foretells the target's final score best."
    )
    error: float | None = Field(
        description="Of its forecasts: the root of the mean squared error of past trainings that "
        "neither the choice of the metric nor the line has seen."
    )
    accuracy: float | None = Field(
        description="Decision accuracy of its early score over past trainings."
    )
    interval: tuple[float, float] | None = Field(description="95 %, of `accuracy`.")
    pairs: int = Field(description="Pairs of past trainings that `accuracy` is of.")
    probability: float | None = Field(description="That the best run is among those that are kept.")
    runs: TupleOf[SweepRun] = Field(description="The most promising first.")
    not_yet: str | None = Field(
        description="Why no run can be stopped; null where some can.",
        examples=["expected 8 past trainings or more on coco@v1/val, found 3"],
    )

    @property
    def stopped(self) -> tuple[str, ...]:
        """The runs that can be stopped."""
        return tuple(one.run for one in self.runs if one.advice == "stop")

    def sentence(self) -> str:
        """The answer in a sentence."""
        if self.not_yet or self.probability is None or self.percent is None:
            return f"not yet: {self.not_yet}"
        stopped = len(self.stopped)
        return (
            f"{stopped} of {format_count(len(self.runs), 'run')} can be stopped at "
            f"{self.percent:.4g} %: the best is among the other {len(self.runs) - stopped} with "
            f"{100 * self.probability:.1f} %"
        )

    def facts(self) -> tuple[object, ...]:
        return self.dataset, self.sentence()
