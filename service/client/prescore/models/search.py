"""Search by a part of a name: splits, trainings, evaluations, metrics, images."""

from typing import Annotated, Literal

from pydantic import Field

from prescore.models.base import Answer, Brief, OpenEnum, TupleOf
from prescore.models.identifiers import SAFE_ID, EvaluationId

MOST_MATCHES = 50
MatchKind = Literal["split", "training", "evaluation", "metric", "image"]


class NameMatch(Brief, needs=("kind", "name")):
    """One thing whose name, label, note or id has the text; null: it has no such part."""

    kind: Annotated[MatchKind, OpenEnum()]
    name: str = Field(
        description="Of a split `name/split`, of a training its label `run`, of an evaluation its "
        "id, of a metric or an image its name."
    )
    detail: str = Field(
        description="Of a split its number of images, of a training its number of evaluations, of "
        "an evaluation the label or the note that has the text, or its labels; of a metric the "
        "first sentence of its definition; of an image its split."
    )
    dataset: str | None = Field(description="`name/split`.")
    evaluation: Annotated[EvaluationId, SAFE_ID] | None = Field(
        description="Of an image, the latest one on its split that succeeded."
    )
    image: str | None
    run: str | None = Field(description="The label `run`.")
    labels: dict[str, str] | None = Field(description="Of an evaluation.")
    metric: str | None

    def facts(self) -> tuple[object, ...]:
        return self.kind, self.name, self.dataset or ""


class NameMatches(Answer, needs=("items",)):
    items: TupleOf[NameMatch] = Field(
        json_schema_extra={"maxItems": MOST_MATCHES},
        description="Equal names first, then those that begin with the text, then others that have "
        "it; a few of each kind.",
    )
