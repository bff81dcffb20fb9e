"""Every setting, frozen: built once at an entry point and passed on. Prefix `PRESCORE_`."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.contract.errors import InvalidSetting


def _device(value: str) -> str:
    if not re.fullmatch(r"auto|cpu|cuda:[0-9]+", value):
        raise ValueError(f"expected auto, cpu or cuda:N, found {value!r}")
    return value


def _data_home() -> Path:
    try:
        return Path.home() / ".local" / "share" / "prescore"
    except RuntimeError:  # no HOME, and a user that the system does not know
        raise InvalidSetting("PRESCORE_HOME: expected a folder, found no home folder") from None


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="PRESCORE_", env_ignore_empty=True, frozen=True)

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
    work_memory_mb: int | None = Field(
        default=None, ge=100, description="A work whose process grows beyond this fails."
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

    @property
    def blobs(self) -> Path:
        return self.home / "blobs"

    def environment(self) -> dict[str, str]:
        """These settings for a process of ours that is started with them."""
        values = self.model_dump(exclude_none=True)
        return {f"PRESCORE_{name.upper()}": str(value) for name, value in values.items()}


def load() -> Settings:
    """The settings of this process's environment; InvalidSetting names the variable."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = "PRESCORE_" + "_".join(str(part) for part in first["loc"]).upper()
        raise InvalidSetting(f"{name}: {first['msg']}") from error
