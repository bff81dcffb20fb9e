"""Comparisons of two evaluations."""

from typing import Annotated, Any, ClassVar
from urllib.parse import quote

from pydantic import Field

from prescore.models.base import Answer, PageOf, RunProblem, TupleOf
from prescore.models.identifiers import SAFE_ID, ComparisonId, EvaluationId, Timestamp
from prescore.models.runs import DatasetPinned, Run, RunTask
from prescore.models.tables import Tabular, split_interval

MOST_DROPS = 3


class Compared(Answer, needs=("a", "b")):
    """One metric of two evaluations. An unknown number is null: with one image only, for metrics
    that are not sums over images, and for an infinite score.
    """

    a: float | None
    b: float | None
    difference: float | None = Field(description="a - b.")
    interval: tuple[float, float] | None = Field(
        description="95 %: the differences that the test behind p would not reject. There is no 0 "
        "in it exactly where p is below .05. null also with five images or fewer."
    )
    p: float | None = Field(
        description="Probability that chance alone makes a difference this large, in either "
        "direction: by exchanging at random the two captions of an image."
    )
    minimum_detectable: float | None = Field(
        description="The smallest difference that these images would show (p < .05) in 80 of 100 "
        "cases."
    )

    def to_row(self) -> dict[str, Any]:
        """The comparison as a row of plain values."""
        bounds = split_interval(self.interval)
        values = {"a": self.a, "b": self.b, "difference": self.difference, **bounds}
        return {**values, "p": self.p, "minimum_detectable": self.minimum_detectable}


class ImageCompared(Answer, needs=("a", "b")):
    a: float | None
    b: float | None
    difference: float | None


class Moved(Answer, needs=("image", "a", "b")):
    """An image: the captions that the two evaluations have of it, and their scores."""

    image: str
    a: str
    b: str
    scores: dict[str, ImageCompared]
    exchanges: TupleOf[tuple[str, str]] = Field(
        description="Content words of `a`, each with the word that `b` has in its place."
    )


class ComparedImagePage(PageOf[Moved]):
    metric: str = Field(description="The one whose scores are shown.", examples=["bleu_4"])


class WordExchange(Answer, needs=("a", "b")):
    """A content word of `a`, and the one that `b` has in its place: both between the same words of
    the two captions of an image.
    """

    a: str
    b: str
    images: int = Field(description="Images in which `a` has the word in the place of that of `b`.")
    reverse: int = Field(description="Images in which `b` has the first and `a` the second.")
    excess: int = Field(description="`images` - `reverse`.")


class WordExchanges(Answer):
    """Content words that `a` says in the place of words of `b`."""

    items: TupleOf[WordExchange] = Field(
        description="Those of at least two images that are exchanged more often this way than the "
        "reverse, the largest excess first."
    )
    images: int = Field(description="Images that were looked at: the first 10,000 at most.")


class CaptionDrops(Answer):
    """The images whose captions' scores fell most against the baseline of a gate, the largest fall
    first. `a` is this evaluation, `b` the baseline. Without images, the other fields are null.
    """

    gate: str | None = Field(
        description="The first failed gate whose metric single captions have scores of; without "
        "one, the first undecided one, or the first that passed although the metric fell."
    )
    metric: str | None = Field(
        description="Of a gate of several, the one that fell most, as a share of the baseline."
    )
    baseline: EvaluationId | None
    images: TupleOf[Moved] = Field(
        json_schema_extra={"maxItems": MOST_DROPS},
        description="Empty also where the captions or scores of one of the two are not stored.",
    )

    def build_image_url(self, page: str, image: str) -> str:
        """Build the URL that shows an image with both captions; `page`: the evaluation's."""
        name = quote(image, safe="", errors="replace")
        return f"{page}/images/{name}?with={quote(self.baseline or '', safe='')}"


class Comparison(Tabular, Run, needs=("a", "b")):
    """A comparison of two evaluations, image by image; metrics appear as they are computed."""

    PLACE: ClassVar[str] = "/v1/comparisons"

    id: Annotated[ComparisonId, SAFE_ID]
    a: EvaluationId
    b: EvaluationId
    dataset: DatasetPinned
    tasks: TupleOf[RunTask]
    scores: dict[str, Compared]
    images: TupleOf[Moved] = Field(
        description="The images that differ most by any of the metrics, relative to that metric's "
        "usual difference; empty until the end, and in lists."
    )
    error: RunProblem | None
    created_at: Timestamp
    finished_at: Timestamp | None

    def to_rows(self) -> list[dict[str, Any]]:
        return [{"metric": name, **score.to_row()} for name, score in self.scores.items()]
