"""A page of a list."""

from typing import Generic, TypeVar

from pydantic import BaseModel, Field

Item = TypeVar("Item")


class Page(BaseModel, Generic[Item]):
    items: list[Item]
    next: str | None = Field(description="The `cursor` of the next page; null on the last page.")
