"""JSON in files that come in, against a schema: one sentence for the first fault and its place."""

from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from service.contract.errors import ConfigInvalid
from service.contract.formats import strict_json
from service.contract.wording import told


class JsonPart(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


Model = TypeVar("Model", bound=BaseModel)


def parse(model: type[Model], text: str, name: str, pointer: str) -> Model:
    """`name` and `pointer`: of the whole, for people and for programs. Raises ConfigInvalid."""
    try:
        return model.model_validate(strict_json.parse(text))
    except strict_json.NotJson as error:
        raise ConfigInvalid(f"{name}: {error}", pointer=pointer) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = "".join(f"/{part}" for part in first["loc"])[:100]
        raise ConfigInvalid(
            f"{name}{where}: {told(first, model.model_fields)}", pointer=pointer + where
        ) from None
