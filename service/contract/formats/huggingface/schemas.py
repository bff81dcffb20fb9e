"""Schemas of configuration files: harmless fields are dropped, unknown ones are refused."""

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from pydantic import BaseModel, ValidationError

from service.contract.errors import ConfigInvalid
from service.contract.formats.strict_json import JsonPart
from service.contract.wording import describe_field_error

HARMLESS = frozenset(
    [
        *("_commit_hash", "_name_or_path", "architectures", "dtype", "torch_dtype"),
        *("is_encoder_decoder", "prefix", "task_specific_params", "tokenizer_class"),
        "transformers_version",
    ]
)


class ConfigPart(JsonPart):
    harmless: ClassVar[frozenset[str]] = frozenset()  # besides those of all parts


Kind = TypeVar("Kind", bound=BaseModel)


def validate_part(kind: type[Kind], found: Mapping[str, Any], where: str) -> Kind:
    """Validate a file's settings. Raises ConfigInvalid for the first wrong or unknown field; those
    that are harmless are left out.
    """
    own: frozenset[str] = getattr(kind, "harmless", frozenset())
    given = {
        name: value
        for name, value in found.items()
        if name in kind.model_fields or name not in HARMLESS | own
    }
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        path = "".join(f"/{part}" for part in first["loc"])[:200]
        raise ConfigInvalid(
            f"{where}{path}: {describe_field_error(first)}", pointer=f"/{where}{path}"
        ) from None
