"""Uploads: files that arrive in several requests, and in parts at the object store itself."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from prescore.models.base import Answer, OpenEnum, PageOf, TupleOf
from prescore.models.identifiers import Digest, Timestamp


def _not_below(least: int) -> AfterValidator:
    def check(number: int) -> int:
        if number < least:
            raise ValueError(f"expected at least {least}, found {number}")
        return number

    return AfterValidator(check)


class UploadProblem(Answer):
    """Why an upload was refused."""

    status: int = Field(description="The HTTP status with which it was refused.")
    code: str = Field(examples=["invalid_checkpoint"])
    detail: str


class Upload(Answer, needs=("id", "kind")):
    """A file that arrives in several requests."""

    id: str
    kind: Annotated[Literal["checkpoint", "columns", "dataset"], OpenEnum()]
    digest: Digest | None = Field(description="Of the whole file, as it was told at the beginning.")
    name: str | None = Field(description="Of the dataset of which it becomes a version.")
    length: int = Field(description="Bytes in all.")
    offset: int = Field(description="Bytes that are kept here for certain: send those after them.")
    staged: int = Field(description="Bytes in parts that the client has sent to the store itself.")
    complete: bool = Field(description="All bytes are there.")
    active: bool = Field(description="A request sends bytes of it just now.")
    location: str | None = Field(description="Path of the stored object; null until it is stored.")
    problem: UploadProblem | None = Field(description="Why it was refused; null unless it was.")
    created_at: Timestamp
    expires_at: Timestamp = Field(description="Time at which it is deleted if no more bytes come.")


class UploadPage(PageOf[Upload]):
    """A team's unfinished uploads, the latest first; there are never more than one page holds."""


class UploadPart(Answer):
    """A part of a file, and where it is sent."""

    number: int = Field(description="From 1 on.")
    offset: Annotated[int, _not_below(0)] = Field(description="Its first byte in the file.")
    bytes: Annotated[int, _not_below(1)] = Field(
        description="Number of bytes that the store takes at this URL: exactly these."
    )
    url: str = Field(
        repr=False,
        description="PUT the bytes here, without the service's key: whoever has the URL may.",
        examples=["https://s3.example.org/bucket/staged/up_…?partNumber=1&X-Amz-Signature=…"],
    )
    expires_at: Timestamp = Field(description="Time at which the URL expires: ask again.")


class UploadParts(Answer, needs=("complete",)):
    """Parts of an upload that a client still has to send to the object store."""

    length: int = Field(description="Bytes in all.")
    staged: int = Field(description="Bytes that the store has.")
    complete: bool = Field(description="All bytes are there: `GET` of the upload tells the rest.")
    parts: TupleOf[UploadPart] = Field(
        description="The next ones that the store does not have, at most 16; none once the upload "
        "is complete."
    )
