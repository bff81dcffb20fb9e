"""What answers are made of: errors of requests and of runs, pages of lists."""

from typing import Generic, TypeVar

from pydantic import BaseModel, Field

from service.contract import limits


class FieldProblem(BaseModel):
    """One error in a request, and its place."""

    pointer: str = Field(
        description="A JSON pointer (RFC 6901) into the body; or `/path/NAME`, `/query/NAME`, "
        "`/header/NAME`."
    )
    detail: str


class Problem(BaseModel):
    """Why a request was refused (RFC 9457)."""

    type: str = Field(json_schema_extra={"format": "uri"})
    title: str = Field(description="The status as text.")
    status: int = Field(description="The HTTP status of the answer.")
    code: str = Field(
        description="The kind of error, for programs; it does not change.", examples=["not_found"]
    )
    detail: str = Field(description="What was expected and what was found.")
    request_id: str = Field(description="The request's id in the service's log.")
    errors: list[FieldProblem] = Field(
        max_length=limits.PROBLEMS,
        description="The first wrong places; empty where the error has no place.",
    )


class RunProblem(BaseModel):
    """Why a work, or the evaluation that it belongs to, failed."""

    code: str = Field(examples=["timeout"])
    detail: str


Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    items: list[Item]
    next: str | None = Field(description="The `cursor` of the next page; null on the last page.")
