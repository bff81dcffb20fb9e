"""What request models are made of: strict objects, bounded lists, texts with a largest length."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    StringConstraints,
)
from pydantic_core import core_schema

from service.contract import limits
from service.contract.formats import words


def whole(value: Any) -> Any:
    """3.0 as 3: JavaScript and JSON do not tell the two apart."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(whole)]


def _let_others_run(value: Any) -> Any:
    """Python gives other threads their turn between its own steps, and never within pydantic's."""
    return value


@dataclass(frozen=True)
class _ToTheFirstError:
    """pydantic's FailFast has no hash, and so cannot stand in a union."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        schema = cast("core_schema.ListSchema", handler(source))
        items = schema.get("items_schema", core_schema.any_schema())
        judged = core_schema.no_info_before_validator_function(_let_others_run, items)
        return cast("core_schema.ListSchema", {**schema, "items_schema": judged, "fail_fast": True})


Item = TypeVar("Item")
# A list that is judged up to its first wrong item. Its field says how long it may be.
Many = Annotated[list[Item], _ToTheFirstError()]


def _few_tokens(caption: str) -> str:
    if words.has_too_many(caption):
        raise ValueError(f"expected at most {limits.TOKENS} words and signs in a caption")
    return caption


Caption = Annotated[str, Field(max_length=limits.CAPTION), AfterValidator(_few_tokens)]
Word = Annotated[str, StringConstraints(max_length=limits.WORD)]
# JSON has no tuples, and a strict model refuses a list where a tuple is expected.
Pair = Annotated[tuple[Word, Word], Field(strict=False)]


def unless(usual: Any) -> Callable[[Any], bool]:
    """Leaves an option with its default out of what is kept. For options that were added later: the
    hashes of requests and the keys of tasks from before stay the same.
    """
    return lambda value: bool(value == usual)


def absent(name: str) -> dict[str, Any]:
    """The JSON schema of objects whose field `name` is null or missing."""
    return {"properties": {name: {"type": "null"}}}


class Strict(BaseModel):
    """Base of all requests: unknown fields are refused, and a text is never read as a number."""

    model_config = ConfigDict(extra="forbid", strict=True)
