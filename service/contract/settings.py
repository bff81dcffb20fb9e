"""Every setting, frozen: built once at an entry point and passed on. Prefix `PRESCORE_`."""

import json
import os
import re
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from service.contract.errors import InvalidSetting

_FROM = "PRESCORE_SETTINGS"  # between our own processes
_CREDENTIALS = "AWS_"


def _device(value: str) -> str:
    if not re.fullmatch(r"auto|cpu|cuda:[0-9]+", value):
        raise ValueError(f"expected auto, cpu or cuda:N, found {value!r}")
    return value


def _data_home() -> Path:
    try:
        return Path.home() / ".local" / "share" / "prescore"
    except RuntimeError:  # no HOME, and a user that the system does not know
        raise InvalidSetting("PRESCORE_HOME: expected a folder, found no home folder") from None


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    home: Path = Field(default_factory=_data_home, description="Where everything is kept.")
    device: Annotated[str, AfterValidator(_device)] = Field(
        default="auto",
        description="Where models run: auto (the first CUDA device, else the CPU), cpu, cuda:N.",
    )
    redis_url: str | None = Field(
        default=None,
        description="Redis that carries the wake-ups; else one of its own (`prescore serve`).",
    )
    database_url: str | None = Field(
        default=None,
        description="The record: sqlite:///… or postgresql://…; else a SQLite file at home.",
    )
    blob_url: str | None = Field(
        default=None,
        description="Objects: file:///folder or s3://bucket/prefix (AWS_… variables); "
        "else a folder at home.",
    )
    assets: Path | None = Field(
        default=None,
        description="A folder with what some metrics need (`prescore assets`); "
        "else, and after it, a folder at home.",
    )
    maven_url: str | None = Field(
        default=None, description="The Maven repository of `prescore assets fetch`."
    )
    work_memory_mb: int | None = Field(
        default=None, ge=100, description="A work whose process grows beyond this fails."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The least that is logged: debug, info, warning, error."
    )

    @property
    def redis(self) -> str:
        if self.redis_url is None:
            raise InvalidSetting(
                "PRESCORE_REDIS_URL: expected redis://… or unix://…; "
                "only `prescore serve` brings a Redis of its own"
            )
        return self.redis_url

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{self.home / 'record.sqlite'}"


def hand_on(settings: Settings) -> tuple[dict[str, str], bytes]:
    """Environment and stdin of a process of ours that is to have these settings.

    URLs and credentials may hold passwords, and environments can be read from outside: they go by
    stdin, which `load` reads.
    """
    handed = {name: value for name, value in os.environ.items() if name.startswith(_CREDENTIALS)}
    own = {_variable(name) for name in Settings.model_fields}
    environment = {
        name: value for name, value in os.environ.items() if name not in own and name not in handed
    }
    document = {"settings": settings.model_dump(mode="json"), "credentials": handed}
    return {**environment, _FROM: "stdin"}, json.dumps(document).encode()


def load() -> Settings:
    """The settings of this process, from its environment or handed on by the one that started it;
    InvalidSetting names the variable.
    """
    if os.environ.get(_FROM) == "stdin":
        document = json.load(sys.stdin)
        os.environ.update(document["credentials"])  # where the object store's library looks
        return Settings.model_validate(document["settings"])
    try:
        return Settings.model_validate(_told())
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidSetting(f"{_variable(first['loc'][0])}: {first['msg']}") from error


def _told() -> dict[str, str]:
    """What the environment says; an empty variable, as compose files write it, says nothing."""
    found = {name: os.environ.get(_variable(name)) for name in Settings.model_fields}
    return {name: value for name, value in found.items() if value}


def _variable(name: str | int) -> str:
    return f"PRESCORE_{name}".upper()
