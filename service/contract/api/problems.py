"""What went wrong: with a request, with a run."""

from pydantic import BaseModel, Field


class FieldProblem(BaseModel):
    """One thing that is wrong with a request, and where."""

    pointer: str = Field(
        description="A JSON pointer (RFC 6901) into the body; or `/path/NAME`, `/query/NAME`, "
        "`/header/NAME`."
    )
    detail: str


class Problem(BaseModel):
    """Why a request was refused (RFC 9457)."""

    type: str = Field(json_schema_extra={"format": "uri"})
    title: str = Field(description="The status in words.")
    status: int = Field(description="The status of the answer.")
    code: str = Field(description="What programs may hold on to.", examples=["not_found"])
    detail: str = Field(description="What was expected, what was found.")
    request_id: str = Field(description="By which the log knows this request.")
    errors: list[FieldProblem] = Field(description="Up to 100 places; none where there is no one.")


class RunProblem(BaseModel):
    """Why a work, or the evaluation that it belongs to, failed."""

    code: str = Field(examples=["timeout"])
    detail: str
