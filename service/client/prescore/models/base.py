"""Parts of every answer of the service: models that read what other versions send, and pages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Literal,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
)

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PrivateAttr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from prescore import plain_text

SHOWN = 60  # characters of a value in a short form
MOST_PROBLEMS = 20  # wrong places that one refusal names
_EMPTY = (str, int, float, bool, dict)  # types with a value that says nothing
Item = TypeVar("Item")
if TYPE_CHECKING:
    TupleOf = Sequence  # so that the service may give a list
else:
    TupleOf = tuple[Item, ...]


class OpenEnum:
    """Marks a Literal to which later versions may add: the schema has its values, and every other
    text is read too.
    """

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.union_schema([handler(source), core_schema.str_schema()])

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        known, _ = schema["choices"]
        return handler(known)


def _or_none(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    try:
        return handler(value)
    except ValidationError:
        return None


OR_NONE = WrapValidator(_or_none)  # for what nothing depends on: another shape is left aside


class Answer(BaseModel):
    """Base of all answers. The service sends every field. A client reads answers of other versions
    too: it ignores fields that it does not know, and a field that is left out is null or empty,
    unless it is named in `needs` or nothing of its type is empty.
    """

    model_config = ConfigDict(
        frozen=True, coerce_numbers_to_str=True, json_schema_serialization_defaults_required=True
    )
    NEEDED: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, needs: tuple[str, ...] = (), **config: Unpack[ConfigDict]) -> None:
        super().__init_subclass__(**config)
        cls.NEEDED = cls.NEEDED.union(needs)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, given: Any) -> Any:
        return {**_empty_fields(cls), **given} if isinstance(given, Mapping) else given


@cache
def _empty_fields(model: type[Answer]) -> Mapping[str, Any]:
    """The values of those fields that a service may leave out."""
    values = {
        name: _empty_value(field.annotation)
        for name, field in model.model_fields.items()
        if field.is_required() and name not in model.NEEDED
    }
    return {name: value for name, value in values.items() if value is not ...}


def _empty_value(annotation: Any) -> Any:
    """The value of a type that says nothing: null, where it may be; ... where there is none."""
    is_union = get_origin(annotation) in (Union, UnionType)
    types = get_args(annotation) if is_union else (annotation,)
    if NoneType in types:
        return None
    kind = get_origin(types[0]) or types[0]
    if kind is Literal:
        return ""
    if kind is tuple:
        items = get_args(types[0])
        return () if items[-1] is ... else tuple(map(_empty_value, items))
    if kind in _EMPTY:
        return kind()
    return {} if issubclass(kind, Answer) else ...


class Brief(Answer):
    """An answer that is shown by its most important facts, in one line."""

    def facts(self) -> tuple[object, ...]:
        raise NotImplementedError

    def __repr__(self) -> str:
        facts = [plain_text.quoted(f"{fact:.{SHOWN}}") for fact in map(str, self.facts()) if fact]
        return f"<{type(self).__name__} {' '.join(facts)}>"

    def __str__(self) -> str:
        return repr(self)


@dataclass(frozen=True)
class Origin:
    """The answer of a service at a URL; empty for what no service has answered."""

    service: str = ""
    pages: str = ""  # where people reach the service's page, if it tells
    replayed: bool = False  # whether an earlier request with the same idempotency key began the run


class Linked(Brief):
    """An answer that has a URL of its own."""

    _origin: Origin = PrivateAttr(Origin())

    def model_post_init(self, context: Any, /) -> None:
        self._origin = context if isinstance(context, Origin) else Origin()

    def place(self) -> str:
        """The path of its URL."""
        raise NotImplementedError

    def below(self) -> tuple[str, ...]:
        """Names of the resources below this one."""
        return ()

    @property
    def api_url(self) -> str:
        return f"{self._origin.service}{self.place()}"

    @property
    def url(self) -> str:
        return self.api_url

    @property
    def links(self) -> dict[str, str]:
        """URLs of this resource and of those below it, by name."""
        here = self.api_url
        return {"self": here, **{name: f"{here}/{name}" for name in self.below()}}


class FieldError(Answer):
    """One error in a request, and its place."""

    pointer: str = Field(
        description="A JSON pointer (RFC 6901) into the body; or `/path/NAME`, `/query/NAME`, "
        "`/header/NAME`."
    )
    detail: str


class Problem(Answer):
    """Why a request was refused (RFC 9457)."""

    type: str = Field(default_factory=lambda: "about:blank", json_schema_extra={"format": "uri"})
    title: str = Field(default_factory=str, description="The status as text.")
    status: int = Field(default_factory=int, description="The HTTP status of the answer.")
    code: str = Field(
        default_factory=str,
        description="The kind of error, for programs; it does not change.",
        examples=["not_found"],
    )
    detail: str = Field(default_factory=str, description="Expected and found values.")
    request_id: str = Field(
        default_factory=str, description="The request's id in the service's log."
    )
    errors: TupleOf[FieldError] = Field(
        default_factory=tuple,
        json_schema_extra={"maxItems": MOST_PROBLEMS},
        description="The first wrong places; empty where the error has no place.",
    )


class RunProblem(Answer):
    """Why a task, or the evaluation that it belongs to, failed."""

    code: str = Field(examples=["timeout"])
    detail: str


class PageOf(Answer, Generic[Item], needs=("items",)):
    items: TupleOf[Item]
    next: str | None = Field(description="The `cursor` of the next page; null on the last page.")
