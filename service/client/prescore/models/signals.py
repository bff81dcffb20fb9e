"""The card of a split: signal and noise of each metric, and how often early scores decide right."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from prescore.models.base import Answer, Brief, OpenEnum, TupleOf
from prescore.models.runs import DatasetPinned
from prescore.models.tables import Tabular
from prescore.plain_text import format_count

NoiseSource = Literal["checkpoints", "seeds", "sampling"]
PERCENTS = (5, 10, 25, 50)  # of a training's steps
_MEASURED = (
    *("metric", "trainings", "mean", "relative", "signal", "noise", "snr", "seed_noise"),
    *("seed_snr", "sampling_noise", "largest_noise", "detectable"),
)
_DECIDED = ("accuracy", "low", "high", "pairs")
SIGNAL_COLUMNS = (*_MEASURED, *(f"{name}_{at}" for at in PERCENTS for name in _DECIDED))


class EarlyDecision(Answer, needs=("percent",)):
    """Decision accuracy: how often early scores have the order that trainings have at the end."""

    percent: int = Field(
        description="Of each training's steps; the early score is that of the last checkpoint up "
        "to there."
    )
    accuracy: float | None = Field(
        description="The share of pairs whose order by this metric's early scores is their order "
        "by the target's final scores; equal early scores have no order. null for metrics that "
        "are neither better high nor low."
    )
    interval: tuple[float, float] | None = Field(
        description="95 %, by leaving out each training once; null for fewer than three trainings "
        "and where it makes no difference which one is left out."
    )
    pairs: int = Field(description="Pairs that have early scores and that the target tells apart.")


class MetricSignal(Answer, needs=("metric",)):
    """Signal and noise of a metric. null: there are too few trainings, checkpoints or seeds."""

    metric: str
    signature: str | None = Field(description="Of most of its scores; others are left out.")
    trainings: int = Field(description="Number of trainings whose last checkpoint has a score.")
    mean: float | None = Field(description="The mean of their final scores.")
    relative: bool = Field(
        description="True where all scores are above 0: signal and noises are shares of means. "
        "Otherwise they are differences of scores."
    )
    signal: float | None = Field(
        description="The difference of the highest and the lowest final score; where `relative`, "
        "divided by the mean."
    )
    noise: float | None = Field(
        description="Between checkpoints: the standard deviation of the last scores of a training, "
        "where `relative` divided by their mean; the mean of trainings with so many checkpoints."
    )
    snr: float | None = Field(description="`signal` / `noise`.")
    seed_noise: float | None = Field(
        description="Between seeds: the same of the final scores of trainings whose label `recipe` "
        "is the same and whose labels `seed` differ; the mean of recipes."
    )
    seed_snr: float | None = Field(description="`signal` / `seed_noise`.")
    sampling_noise: float | None = Field(
        description="Between images: the mean standard error of final scores, from their "
        "intervals; where `relative`, divided by `mean`."
    )
    largest_noise: Annotated[NoiseSource, OpenEnum()] | None
    detectable: float | None = Field(
        description="The smallest difference of two trainings that a paired test on these images "
        "would show (p < .05) in 95 of 100 cases, in the metric's unit. null where no resamples "
        "are stored, as of most pre-gen metrics."
    )
    decisions: TupleOf[EarlyDecision]

    def cells(self) -> Iterator[object]:
        """Cells of the metric's row in a table of SIGNAL_COLUMNS."""
        yield from (getattr(self, name) for name in _MEASURED)
        decided = {one.percent: one for one in self.decisions}
        for at in PERCENTS:
            one = decided.get(at, EarlyDecision(percent=at, accuracy=None, interval=None, pairs=0))
            yield from (one.accuracy, *(one.interval or (None, None)), one.pairs)


class SignalCard(Tabular, Brief, needs=("dataset", "target")):
    """Metrics of a split, by what they can decide there."""

    dataset: DatasetPinned
    target: str = Field(description="The metric whose final scores early scores should tell.")
    last: int = Field(description="Number of last checkpoints of a training that make `noise`.")
    average: int = Field(
        description="Number of checkpoints whose mean is an early, or a final, score."
    )
    trainings: dict[str, int] = Field(description="Number of checkpoints by label `run`.")
    left_out: dict[str, int] = Field(
        description="Number of evaluations that are left out, by reason."
    )
    pairs: int = Field(description="Pairs of trainings whose final scores the target tells apart.")
    too_close: int = Field(
        description="Pairs that are left out: a paired test of the target's final scores sees no "
        "difference."
    )
    metrics: TupleOf[MetricSignal] = Field(
        description="The highest `snr` first: all post-gen metrics, and the first pre-gen ones."
    )
    none_because: str | None = Field(
        description="Why there is no signal; null where there is one.",
        examples=["no evaluation of coco/val has the labels run and step"],
    )

    def to_rows(self) -> list[dict[str, Any]]:
        return [dict(zip(SIGNAL_COLUMNS, each.cells(), strict=True)) for each in self.metrics]

    def facts(self) -> tuple[object, ...]:
        return self.dataset, self.none_because or format_count(len(self.trainings), "training")
