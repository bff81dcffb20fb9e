"""All settings, from variables `PRESCORE_…`: read once at an entry point and passed on."""

import contextlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from prescore import model_types
from service.contract.errors import InvalidSetting

_FROM = "PRESCORE_SETTINGS"  # tells a child process to read its settings from stdin
_CREDENTIALS = ("AWS_", "OTEL_")  # a collector's headers may hold a key
_TASK_SHARE = 0.75
MOST_RUNS = 2000
PROTECTED_LABELS = frozenset({"branch=main"})
_CONTAINER_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)


def _device(value: str) -> str:
    if not re.fullmatch(r"auto|cpu|cuda:[0-9]{1,3}(,cuda:[0-9]{1,3}){0,15}", value):
        raise ValueError(f"expected auto, cpu or cuda:N (several: cuda:0,cuda:1), found {value!r}")
    return value


def _labels(value: str) -> str:
    for label in filter(None, map(str.strip, value.split(","))):
        if not re.fullmatch(r"[^=]+=.+", label):
            raise ValueError(f"expected NAME=VALUE with commas between them, found {label!r:.100}")
    return value


def _model_types(value: str) -> str:
    if not re.fullmatch(r"([\w.-]{1,60}(,[\w.-]{1,60}){0,99})?", value):
        raise ValueError(f"expected types with commas between them, found {value!r:.100}")
    return value


def _url(pattern: str, example: str) -> AfterValidator:
    def check(value: str) -> str:
        if not re.fullmatch(rf"https?://{pattern}/?", value):
            raise ValueError(f"expected a URL such as {example}")
        return value.rstrip("/")

    return AfterValidator(check)


_STORE_URL = _url(r"[^/\s@?#]+", "https://s3.example.org")
_PAGE_URL = _url(
    r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?", "https://scores.example.org"
)


def _data_home() -> Path:
    try:
        return Path.home() / ".local" / "share" / "prescore"
    except RuntimeError:  # no HOME, and a user that the system does not know
        raise InvalidSetting("PRESCORE_HOME: expected a folder, found no home folder") from None


Sandbox = Literal["required", "off"]
Outgoing = Literal["off", "webhooks"]
ByUrl = Literal["off", "on"]


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    home: Path = Field(default_factory=_data_home, description="The folder of all data.")
    device: Annotated[str, AfterValidator(_device)] = Field(
        default="auto",
        description="Where models run: auto (the first CUDA device, else the CPU), cpu, cuda:N; or "
        "several, cuda:0,cuda:1, of which a model of transformers takes all.",
    )
    redis_url: str | None = Field(
        default=None,
        description="Redis, for the queues; else `prescore serve` starts its own.",
    )
    database_url: str | None = Field(
        default=None,
        description="The database: sqlite:///… or postgresql://…; else a SQLite file in "
        "PRESCORE_HOME.",
    )
    blob_url: str | None = Field(
        default=None,
        description="The object store: file:///folder or s3://bucket/prefix (AWS_… variables); "
        "else a folder in PRESCORE_HOME.",
    )
    public_url: Annotated[str, _PAGE_URL] | None = Field(
        default=None,
        description="Where people reach the page, such as https://scores.example.org: links to it "
        "begin so. Default: the address under which the service was asked.",
    )
    blob_public_url: Annotated[str, _STORE_URL] | None = Field(
        default=None,
        description="Where clients reach the S3-compatible store, such as "
        "https://s3.example.org: they send large files there themselves, in parts. Default: all "
        "come through the API.",
    )
    assets: Path | None = Field(
        default=None,
        description="A folder with the assets of some metrics (`prescore assets`), searched "
        "before the folder `assets` in PRESCORE_HOME.",
    )
    maven_url: str | None = Field(
        default=None, description="The Maven repository of `prescore assets fetch`."
    )
    task_memory_mb: int | None = Field(
        default=None,
        ge=100,
        description="The memory limit of a task's process; a task that needs more fails. Default: "
        "three quarters of the memory that this machine or container has, which is also the limit "
        "of all tasks together: the one that takes most is ended and tried again.",
    )
    most_runs: int = Field(
        default=MOST_RUNS,
        ge=2,
        description="How many evaluations and other runs may be unfinished at once; one address "
        "may have half of what others leave. More are refused with 503.",
    )
    inference_speed: float = Field(
        default=1.0,
        ge=0.01,
        le=10_000,
        description="How many times faster than a usual core the workers compute models, as GPUs "
        "do. By it the API decides which searches take too long, and how tasks are cut.",
    )
    hosts: str = Field(
        default="",
        max_length=10_000,
        description="Names under which clients reach the API, with commas between them. Addresses "
        "and names without a dot need not be named.",
    )
    proxies: str = Field(
        default="",
        max_length=10_000,
        description="Addresses or networks of the proxies before the API, with commas between "
        "them: what their X-Forwarded-For says is believed.",
    )
    outgoing: Outgoing = Field(
        default="webhooks",
        description="What the service may send to, or fetch from, URLs that its users choose: off "
        "(nothing), webhooks.",
    )
    datasets_by_url: ByUrl = Field(
        default="off",
        description="Whether the API fetches datasets from URLs that its users choose: off, on "
        "(https, public addresses, at most 5 GB in 10 minutes each).",
    )
    outgoing_allow: str = Field(
        default="",
        max_length=10_000,
        description="Hosts inside your network that such URLs may lead to, as host or host:port "
        "with commas between them; all others must have public addresses.",
    )
    sandbox: Sandbox = Field(
        default="required",
        description="Files that may run code when they are opened, and pictures: required (in a "
        "sandbox alone; unavailable where this machine has none) or off (without one: whoever "
        "sends such a file may get all that this user has).",
    )
    converter: Path | None = Field(
        default=None,
        description="The socket of a `prescore worker converter`, which opens these files and "
        "pictures in the workers' place; else the workers do it.",
    )
    model_types: Annotated[str, AfterValidator(_model_types)] = Field(
        default="",
        description="Types of models of transformers (`model_type`), with commas between them, "
        "that are opened though no test has compared them with the library; signatures of their "
        "scores say so. Clients read the variable too.",
    )
    limits: Path | None = Field(
        default=None,
        description="A file of limits (TOML) by key and team: requests a minute, unfinished runs, "
        "bytes and seconds a day. Default: 60,000 requests a minute of a key, and no others.",
    )
    protected_labels: Annotated[str, AfterValidator(_labels)] = Field(
        default="branch=main",
        max_length=10_000,
        description="Labels NAME=VALUE, with commas between them, that only keys with the scope "
        "`publish` give, change or remove, and that keep a run from being deleted by its age.",
    )
    oidc: Path | None = Field(
        default=None,
        description="A TOML file that says which issuers' CI jobs get keys for their tokens, and "
        "what these allow.",
    )
    keep_runs_days: int | None = Field(
        default=None,
        ge=1,
        description="Days after its end that an evaluation or a comparison is deleted, unless it "
        "has a protected label, is the best of a board or is needed. Default: none is.",
    )
    audit_days: int = Field(
        default=365, ge=1, description="Days that the list of changes (`/v1/audit`) is kept."
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="The lowest level that is logged: debug, info, warning, error."
    )

    def at(self, home: Path | None) -> "Settings":
        """The same with another home, as the option `--home` gives it; None: this one."""
        return self if home is None else self.model_copy(update={"home": home.absolute()})

    @property
    def redis(self) -> str:
        if self.redis_url is None:
            raise InvalidSetting(
                "PRESCORE_REDIS_URL: expected redis://… or unix://…; "
                "only `prescore serve` starts its own Redis"
            )
        return self.redis_url

    @property
    def task_memory(self) -> int:
        """The memory limit of a task's process in bytes."""
        if self.task_memory_mb is not None:
            return self.task_memory_mb * 1_000_000
        return int(_TASK_SHARE * machine_memory())

    @property
    def tasks_memory(self) -> int:
        """The memory limit of all tasks of this machine together, in bytes."""
        return max(self.task_memory, int(_TASK_SHARE * machine_memory()))

    @property
    def named_hosts(self) -> list[str]:
        return [name.strip() for name in self.hosts.split(",") if name.strip()]

    @property
    def protected(self) -> frozenset[str]:
        return frozenset(filter(None, map(str.strip, self.protected_labels.split(","))))

    @property
    def record_file(self) -> Path | None:
        """The file of the database, if it is in the home folder."""
        return self.home / "record.sqlite" if self.database_url is None else None

    @property
    def database(self) -> str:
        return self.database_url or f"sqlite:///{self.record_file}"


def machine_memory() -> int:
    """Bytes of this machine, or of its container if that has less."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in _CONTAINER_LIMITS:
        with contextlib.suppress(OSError, ValueError):  # "max": none
            total = min(total, int(limit.read_text()))
    return total


def export_settings(settings: Settings) -> tuple[dict[str, str], bytes]:
    """The environment and the stdin that give these settings to a child process.

    URLs and credentials may contain passwords, and other programs can read an environment: they go
    through stdin, which `load_settings` reads.
    """
    handed = {name: value for name, value in os.environ.items() if name.startswith(_CREDENTIALS)}
    own = {_variable(name) for name in Settings.model_fields}
    environment = {
        name: value for name, value in os.environ.items() if name not in own and name not in handed
    }
    document = {"settings": settings.model_dump(mode="json"), "credentials": handed}
    return {**environment, _FROM: "stdin"}, json.dumps(document).encode()


def load_settings() -> Settings:
    """The settings of this process, from its environment or from its parent's `export_settings`.

    InvalidSetting names the variable.
    """
    if os.environ.get(_FROM) == "stdin":
        document = json.load(sys.stdin)
        os.environ.update(document["credentials"])  # where other libraries read them
        found = Settings.model_validate(document["settings"])
        os.environ[model_types.ADMITTING] = found.model_types
        return found
    try:
        return Settings.model_validate(_from_environment())
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidSetting(f"{_variable(first['loc'][0])}: {first['msg']}") from error


def _from_environment() -> dict[str, str]:
    """Values of the variables; an empty one, as compose files write it, counts as not set."""
    found = {name: os.environ.get(_variable(name)) for name in Settings.model_fields}
    return {name: value for name, value in found.items() if value}


def _variable(name: str | int) -> str:
    return f"PRESCORE_{name}".upper()
