"""Parts of requests: strict objects, bounded lists, texts with a largest length, captions."""

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
    model_validator,
)
from pydantic_core import PydanticKnownError, core_schema

from service.contract import limits
from service.contract.formats import vocabularies


def convert_whole_number(value: Any) -> Any:
    """3.0 as 3: JavaScript and JSON do not tell the two apart."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(convert_whole_number)]
# Seconds.
Deadline = Annotated[int, Field(ge=1, le=7 * 24 * 3600), BeforeValidator(convert_whole_number)]


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
    if vocabularies.has_too_many_tokens(caption):
        raise ValueError(f"expected at most {limits.TOKENS} words and signs in a caption")
    return caption


Caption = Annotated[str, Field(max_length=limits.CAPTION), AfterValidator(_few_tokens)]
Word = Annotated[str, StringConstraints(max_length=limits.WORD)]
# JSON has no tuples, and a strict model refuses a list where a tuple is expected.
Pair = Annotated[tuple[Word, Word], Field(strict=False)]


def equals_default(usual: Any) -> Callable[[Any], bool]:
    """Leaves an option with its default out of what is kept. For options that were added later: the
    hashes of requests and the keys of tasks from before stay the same.
    """
    return lambda value: bool(value == usual)


def build_absent_schema(name: str) -> dict[str, Any]:
    """The JSON schema of objects whose field `name` is null or missing."""
    return {"properties": {name: {"type": "null"}}}


class StrictModel(BaseModel):
    """Base of all requests: unknown fields are refused, and a text is never read as a number."""

    model_config = ConfigDict(extra="forbid", strict=True)


def _either(schema: dict[str, Any]) -> None:
    """Complete the schema: exactly one of `image` and `image_id`."""
    schema["properties"]["image_id"] = {
        "anyOf": [{"type": "string", "maxLength": limits.IMAGE}, {"type": "integer"}],
        "title": "Image Id",
        "description": "An image of the split, as COCO's results format names it.",
    }
    schema["required"] = ["caption"]
    schema["oneOf"] = [{"required": ["image"]}, {"required": ["image_id"]}]


class CaptionInput(StrictModel):
    """A captioner's caption of one image, named by `image` or, as in COCO's results, `image_id`."""

    model_config = ConfigDict(json_schema_extra=_either)

    image: str = Field(
        max_length=limits.IMAGE, description="An image of the split, by its name or its id."
    )
    caption: Caption
    image_id: Any = Field(default=None, exclude=True)  # as it was given; `image` is its text

    @property
    def named_by(self) -> str:
        return "image" if self.image_id is None else "image_id"

    @model_validator(mode="before")
    @classmethod
    def _named_once(cls, given: Any) -> Any:
        if not isinstance(given, dict) or "image_id" not in given:
            return given
        if "image" in given:
            raise ValueError("expected `image` or `image_id`, found both")
        name = convert_whole_number(given["image_id"])
        if type(name) in (int, str):
            return {**given, "image": str(name)}
        raise ValueError(f"expected a text or a whole number as image_id, found {name!r:.40}")


def _counted(given: Any) -> Any:
    """Counts before pydantic does, which judges items as it counts: a second for many."""
    if isinstance(given, list) and len(given) > limits.CAPTIONS:
        told = {"field_type": "List", "max_length": limits.CAPTIONS, "actual_length": len(given)}
        raise PydanticKnownError("too_long", told)
    return given


CaptionsInput = Annotated[
    Many[CaptionInput], Field(min_length=1, max_length=limits.CAPTIONS), BeforeValidator(_counted)
]
