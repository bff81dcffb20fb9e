"""Requests for changes of stored runs and datasets, and for the key of a CI job."""

from typing import Annotated

from pydantic import Field, StringConstraints, WithJsonSchema

from service.contract import limits
from service.contract.api.field_types import (
    LABEL_SCHEMA,
    Label,
    LabelName,
    NoNul,
    build_labels_schema,
)
from service.contract.api.request_parts import StrictModel

_NOTE = {"type": "string", "maxLength": limits.NOTE, "pattern": r"^[^\x00]*$"}

Note = Annotated[str, StringConstraints(max_length=limits.NOTE), NoNul, WithJsonSchema(_NOTE)]


class RunChange(StrictModel):
    """Fields of a run to change; those left out stay as they are."""

    note: Note | None = Field(
        default=None, description="Note for readers of this run; null removes it."
    )


class EvaluationChange(RunChange):
    """Fields of an evaluation to change; those left out stay as they are."""

    labels: Annotated[
        dict[LabelName, Label | None],
        build_labels_schema({"anyOf": [LABEL_SCHEMA, {"type": "null"}]}, 2 * limits.LABELS),
    ] = Field(
        default={},
        max_length=2 * limits.LABELS,
        description="Labels to be set, each by its name; null removes one. The others stay.",
        examples=[{"branch": "main", "draft": None}],
    )


class DatasetChange(StrictModel):
    """Changes that a version of a dataset allows."""

    pictures_shown: bool = Field(description="True if its pictures may be seen.")


class JobKeyRequest(StrictModel):
    """A CI job's proof of who it is."""

    token: str = Field(
        min_length=1,
        max_length=16_384,
        pattern=r"^[!-~]+$",
        description="The JWT that the CI system gives to the job.",
    )
