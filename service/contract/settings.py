"""Every setting, frozen: built once at an entry point and passed on. Prefix `PRESCORE_`."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.contract.errors import InvalidSetting


def _device(value: str) -> str:
    if not re.fullmatch(r"auto|cpu|cuda:\d+", value):
        raise ValueError(f"expected auto, cpu or cuda:N, found {value!r}")
    return value


def _data_home() -> Path:
    return Path.home() / ".local" / "share" / "prescore"


class Settings(BaseSettings):
    model_config = SettingsConfigDict(env_prefix="PRESCORE_", frozen=True)

    home: Path = Field(default_factory=_data_home, description="Where everything is kept.")
    device: Annotated[str, AfterValidator(_device)] = Field(
        default="auto",
        description="Where models run: auto (the first CUDA device, else the CPU), cpu, cuda:N.",
    )


def load() -> Settings:
    """The settings of this process's environment; InvalidSetting names the variable."""
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = "PRESCORE_" + "_".join(str(part) for part in first["loc"]).upper()
        raise InvalidSetting(f"{name}: {first['msg']}") from error
