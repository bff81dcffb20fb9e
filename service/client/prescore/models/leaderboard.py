"""A leaderboard and a history: one metric of a split's evaluations."""

from typing import Annotated, Any, Generic, Literal

from pydantic import Field

from prescore.models.base import Answer, Brief, Item, OpenEnum, PageOf, TupleOf
from prescore.models.identifiers import Digest, EvaluationId, Timestamp
from prescore.models.runs import DatasetPinned
from prescore.models.tables import split_interval


class ScoreBeside(Answer, needs=("evaluation", "value")):
    """Another metric of an evaluation on a board."""

    evaluation: EvaluationId = Field(
        description="The evaluation itself, or another one of the same checkpoint."
    )
    value: float
    interval: tuple[float, float] | None


class Scored(Brief, needs=("evaluation", "value")):
    """One metric of one evaluation."""

    evaluation: EvaluationId
    checkpoint: Digest | None = Field(description="null: captions were submitted.")
    value: float
    interval: tuple[float, float] | None
    labels: dict[str, str]
    scores: dict[str, ScoreBeside] = Field(
        description="Those of the other `metrics` that it has; empty where none were asked for."
    )
    created_at: Timestamp

    def to_row(self) -> dict[str, Any]:
        """The score as a row of plain values, with the other metrics by their names."""
        facts = {"evaluation": self.evaluation, "value": self.value}
        others = {name: one.value for name, one in self.scores.items()}
        return {**facts, **split_interval(self.interval), **others, "labels": self.labels}

    def facts(self) -> tuple[object, ...]:
        return self.evaluation, f"{self.value:.4g}"


class FirstDifference(Answer, needs=("difference", "interval", "p")):
    """A paired test against the first of a board, on the same images."""

    difference: float = Field(description="This value less that of the first.")
    interval: tuple[float, float] = Field(
        description="95 %. There is no 0 in it exactly where p is below .05."
    )
    p: float = Field(
        description="Probability that chance alone makes a difference this large, in either "
        "direction; 1 where the two are equal but for rounding."
    )


class Standing(Scored, needs=("rank",)):
    rank: int = Field(
        description="The place of the best evaluation of which this one is not told apart: a rank "
        "is shared by those that do not differ from its best one at 5 %."
    )
    tied: bool
    ranked_by: Annotated[Literal["test", "intervals"], OpenEnum()] = Field(
        description="Comparison with the best one of the rank above, or of its own: by a "
        "paired test on the same images, or by whether intervals overlap, where one of the two has "
        "no draws: it was computed before there were any, the metric is no sum over images, or "
        "1,000 or more are above it."
    )
    is_collapsed: bool = Field(
        description="True where the evaluation's `collapsed` names a caption."
    )
    tied_with_first: bool = Field(
        description="True if it is not told apart from the first of the board, by a test or by "
        "intervals; false for the first itself. One of a later rank may be so, too: its own rank's "
        "best one differs from the first, and it need not."
    )
    against_first: FirstDifference | None = Field(
        description="null for the first itself, and where one of the two has no draws (see "
        "`ranked_by`)."
    )
    equal: int = Field(
        description="Number of other evaluations with this score and the same checkpoint, or of "
        "captions: they share the row of the one that was submitted first."
    )
    equal_ones: TupleOf[EvaluationId] = Field(
        description="The first 20 of these, the first submitted first."
    )

    def to_row(self) -> dict[str, Any]:
        return {"rank": f"{'=' if self.tied else ''}{self.rank}", **super().to_row()}

    def facts(self) -> tuple[object, ...]:
        return f"{'=' if self.tied else ''}{self.rank}", *super().facts()


class BoardHead(Answer, needs=("dataset", "metric")):
    """Head of a leaderboard or a history: facts that hold for all its rows."""

    dataset: DatasetPinned
    metric: str
    higher_is_better: bool | None
    signature: str | None = Field(
        description="The signature of all listed scores; null where there are none."
    )
    others: dict[str, int] = Field(
        description="Number of evaluations that are left out, by signature."
    )
    beside: dict[str, str | None] = Field(
        description="The other `metrics` that were asked for, each with the signature of its "
        "scores; null where there are none."
    )
    none_because: str | None = Field(
        description="Why there is no score, and what there is instead; null where there are some.",
        examples=["no score has the label branch=mian; did you mean branch=main?"],
    )


class ScoreList(BoardHead, PageOf[Item], Generic[Item]):
    """One metric on one split. Only scores with the same signature are listed together."""


class BoardReferences(Answer):
    """Scores to hold a board against, by metric, from the latest usual probes of the split that
    succeeded.
    """

    human: dict[str, float] = Field(
        description="People's captions against the other references of the image."
    )
    constant: dict[str, float] = Field(description="The best single sentence for all images.")


class Leaderboard(ScoreList[Standing]):
    detectable: float | None = Field(
        description="The smallest difference from the first that these images show (p < .05) in 80 "
        "of 100 cases: the median over the items that have `against_first`; null without any."
    )
    firsts: dict[str, EvaluationId] = Field(
        description="On the first page, the evaluation with the best value of all that are on the "
        "board: by its metric, and by each of `metrics` that has a direction and scores. Empty on "
        "later pages."
    )
    references: BoardReferences = Field(
        description="By the metric of the board and by those of `metrics`; empty without probes."
    )
    constant_caption: str | None = Field(
        description="The sentence of `references.constant`; null where it is not known."
    )


class ScoreHistory(ScoreList[Scored]):
    pass
