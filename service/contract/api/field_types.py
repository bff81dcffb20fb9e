"""Types of requests' fields: names and times, each with its pattern."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, PydanticKnownError, core_schema

from prescore import plain_text
from prescore.models import identifiers
from prescore.models.identifiers import DATASET_NAME, DIGEST, EVALUATION, run_id
from service.contract import limits
from service.contract.gates import gates
from service.contract.metrics import catalogue, families, tokenizers

_NO_NUL = r"^[^\x00]*$"  # PostgreSQL refuses texts with a NUL

DATASET = f"^{DATASET_NAME}$"
_VERSION = f"{DATASET_NAME}(@v[0-9]{{1,9}})?"
_SPLIT = r"/[^/@\x00-\x20]{1,100}"
SPLIT = f"^{_VERSION}{_SPLIT}$"
SPLITS = f"^{_VERSION}({_SPLIT})?$"


def _like(pattern: str, expected: str) -> AfterValidator:
    """A validator whose message says what was expected, instead of showing the pattern."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"expected {expected}, found {text!r:.100}")
        return text

    return AfterValidator(check)


def _described(pattern: str, description: str, *examples: str) -> Any:
    extra: dict[str, Any] = {"pattern": pattern}
    return Field(description=description, examples=list(examples) or None, json_schema_extra=extra)


Digest = Annotated[  # one file, one address
    identifiers.Digest, _like(DIGEST, "sha256: and 64 hex digits in lower case")
]
DatasetName = Annotated[
    str,
    _like(DATASET, "up to 100 letters, digits, '.', '_' and '-', a letter or a digit first"),
    _described(DATASET, "The name of a dataset.", "flickr8k"),
]
DatasetFilter = Annotated[
    str,
    _like(SPLITS, "name[@version][/split], such as flickr8k@v1 or flickr8k/test"),
    _described(SPLITS, "`name[@version][/split]`.", "flickr8k@v1", "flickr8k/test"),
]
DatasetReference = Annotated[
    str,
    _like(SPLIT, "name[@version]/split, such as flickr8k@v1/test"),
    _described(
        SPLIT,
        "`name[@version]/split`; without a version, the latest one, and for a checkpoint the "
        "latest with its encoder's features among those with the same captions. The answer names "
        "the version and the digest that it stands for.",
        "flickr8k@v1/test",
    ),
]
NoNul = _like(_NO_NUL, "a text without NUL")
Label = Annotated[str, StringConstraints(max_length=500), NoNul]
PlainName = Annotated[
    str,
    _like(plain_text.NAME, "a name without control characters and the like"),
    Field(json_schema_extra={"pattern": plain_text.NAME}),
]
BaseName = Annotated[PlainName, StringConstraints(min_length=1, max_length=200)]
_PROMPT = rf"^([^{plain_text.POWERFUL}]|\n)*$"
PromptText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=1000),
    _like(_PROMPT, "a text without control characters and the like, except line breaks"),
    Field(json_schema_extra={"pattern": _PROMPT}),
]
LabelName = Annotated[PlainName, StringConstraints(min_length=1, max_length=100)]
LABEL_SCHEMA = {"type": "string", "maxLength": 500, "pattern": _NO_NUL}


def build_labels_schema(label: dict[str, Any], most: int) -> WithJsonSchema:
    """The schema of labels by name; pydantic's own allows names with a NUL."""
    return WithJsonSchema(
        {
            "type": "object",
            "propertyNames": {"minLength": 1, "maxLength": 100, "pattern": plain_text.NAME},
            "additionalProperties": label,
            "maxProperties": most,
        }
    )


Labels = Annotated[dict[LabelName, Label], build_labels_schema(LABEL_SCHEMA, limits.LABELS)]
GateText = Annotated[str, StringConstraints(min_length=1, max_length=gates.MAX_LENGTH)]
_BASELINE = rf"^(best|{run_id(EVALUATION)[1:-1]}|[^=\x00]{{1,100}}=[^\x00]{{0,500}})$"
Baseline = Annotated[
    str,
    _like(_BASELINE, "a label such as branch=main, an evaluation's id, or best"),
    _described(
        _BASELINE,
        "What `baseline` in gates means: on this split with these captions, the latest evaluation "
        "with a label, the evaluation with an id, or for each metric the best one so far.",
        "branch=main",
    ),
]


def moment(seconds: float) -> datetime:
    """Seconds since 1970, as the database has them, as a moment of an answer."""
    return datetime.fromtimestamp(seconds, UTC)


def moment_or_none(seconds: float | None) -> datetime | None:
    return None if seconds is None else moment(seconds)


def rfc3339(seconds: float) -> str:
    """Format a time as RFC 3339."""
    return identifiers.rfc3339(moment(seconds))


def rfc3339_or_none(seconds: float | None) -> str | None:
    return None if seconds is None else rfc3339(seconds)


def _pregen(*tiers: Iterable[str]) -> str:
    """The pattern of names that have a part of each tier, and of the others."""
    parts = "_".join(f"({'|'.join(tier)})" for tier in tiers)
    return f"^({'|'.join((*catalogue.ALIASES, *catalogue.TOKEN_METRICS))}|{parts})$"


MOST_METRICS = 20  # of a board, and of an evaluation where a request names some
MOST_DEFINITIONS = 50  # of the catalogue, where a request names some

# The catalogue refuses unknown names of metrics and suggests the nearest ones.
_OF_IMAGES = (*catalogue.AGGREGATES, catalogue.JOIN)
_OF_CAPTIONS = catalogue.CAPTION_SCORES, catalogue.FILTERS
_ANY_PREGEN = _pregen(catalogue.AGGREGATES, _OF_IMAGES, *_OF_CAPTIONS)
_SUMMED_PREGEN = _pregen(catalogue.SUMMED, _OF_IMAGES, *_OF_CAPTIONS)
_OF_MODEL = {"pattern": f"^{catalogue.MODEL}$"}


def _postgen() -> dict[str, Any]:
    return {"enum": [*catalogue.GROUPS, *catalogue.POSTGEN]}


def _score() -> dict[str, Any]:
    return {"anyOf": [_postgen(), _OF_MODEL]}


def _probed() -> dict[str, Any]:
    probed = {name: row for name, row in families.FAMILIES.items() if row.is_probed}
    groups = (name for name, row in probed.items() if row.is_group)
    names = (name for row in probed.values() for name in row.names)
    return {"anyOf": [{"enum": [*groups, *names]}, _OF_MODEL]}


def _several(most: int) -> dict[str, Any]:
    """A text of names that are separated by commas."""
    bare = [pattern.strip("^$") for pattern in (_ANY_PREGEN, _OF_MODEL["pattern"])]
    one = "|".join([*catalogue.POSTGEN, *bare])
    return {"pattern": f"^({one})(, *({one})){{0,{most - 1}}}$"}


def _single() -> dict[str, Any]:
    return {"anyOf": [{"enum": list(catalogue.POSTGEN)}, {"pattern": _ANY_PREGEN}, _OF_MODEL]}


def _sorting() -> dict[str, Any]:
    """A metric, after a `-` for the highest first."""
    postgen = [sign + name for sign in ("", "-") for name in catalogue.POSTGEN]
    others = (_ANY_PREGEN.strip("^$"), catalogue.MODEL)
    return {"anyOf": [{"enum": postgen}, *({"pattern": f"^-?({one})$"} for one in others)]}


def _ranked() -> dict[str, Any]:
    """Schema of metrics with a direction, which a pre-gen metric has by its scores and filter."""
    names = [name for name, row in catalogue.METRICS.items() if row.higher_is_better is not None]
    endings = {name.split("_", 2)[2]: None for name in names if name in catalogue.PREGEN}
    pregen = _pregen(catalogue.AGGREGATES, _OF_IMAGES, endings)
    postgen = [name for name in names if name in catalogue.POSTGEN]
    return {"anyOf": [{"enum": postgen}, {"pattern": pregen}, _OF_MODEL]}


def _schema(more: Callable[[], dict[str, Any]]) -> Any:
    """A Field whose JSON schema gets `more()`, called each time that the schema is made."""
    return Field(json_schema_extra=lambda schema: schema.update(more()))


PregenName = Annotated[
    str,
    Field(json_schema_extra={"pattern": _ANY_PREGEN}, examples=[catalogue.HEADLINE[0]]),
]
SummedName = Annotated[str, Field(json_schema_extra={"pattern": _SUMMED_PREGEN})]
PostgenName = Annotated[str, _schema(_postgen)]
ProbedName = Annotated[str, _schema(_probed)]
ScoreName = Annotated[str, _schema(_score)]
MetricName = Annotated[str, _schema(_single)]
SortingName = Annotated[str, _schema(_sorting)]
RankedName = Annotated[str, _schema(_ranked)]
MetricNames = Annotated[str, _schema(lambda: _several(MOST_METRICS))]
DefinitionNames = Annotated[str, _schema(lambda: _several(MOST_DEFINITIONS))]


@dataclass(frozen=True)
class OneOfNames:
    """A text that is one of `names()`, called at each check. Other texts get pydantic's error for a
    Literal.
    """

    names: Callable[[], Sequence[str]]

    def __get_pydantic_core_schema__(
        self, source: type[str], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), "enum": list(self.names())}

    def _checked(self, value: Any) -> Any:
        known = list(self.names())
        if value not in known:
            *others, last = map(repr, known)
            expected = f"{', '.join(others)} or {last}" if others else last
            raise PydanticKnownError("literal_error", {"expected": expected})
        return value


TokenizerName = Annotated[str, OneOfNames(tokenizers.list_scored_tokenizers)]
AnyTokenizerName = Annotated[str, OneOfNames(tokenizers.list_tokenizers)]
SearchedName = Annotated[str, OneOfNames(families.list_searched_metrics)]
FeatureName = Annotated[str, OneOfNames(lambda: list(families.list_features()))]
