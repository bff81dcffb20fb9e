"""What all answers of the service are made of; unknown fields are ignored."""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, PrivateAttr, StringConstraints

from prescore import plain_text

# Checked, since programs make paths, URLs and commands of them.
Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")]
ENDED = frozenset({"succeeded", "failed", "canceled"})
SHOWN = 60  # characters of a value in a short form


class Answer(BaseModel):
    """Base of all answers. A status stays text: a new status must not break an old client."""

    model_config = ConfigDict(extra="ignore", frozen=True, coerce_numbers_to_str=True)


class Brief(Answer):
    """An answer that is shown by its most important facts, in one line."""

    def facts(self) -> tuple[object, ...]:
        raise NotImplementedError

    def __repr__(self) -> str:
        told = [plain_text.quoted(f"{fact:.{SHOWN}}") for fact in map(str, self.facts()) if fact]
        return f"<{type(self).__name__} {' '.join(told)}>"

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
        """The names of what lies below it."""
        return ()

    @property
    def api_url(self) -> str:
        return f"{self._origin.service}{self.place()}"

    @property
    def url(self) -> str:
        return self.api_url

    @property
    def links(self) -> dict[str, str]:
        """Where the service has more of it, by name."""
        here = self.api_url
        return {"self": here, **{name: f"{here}/{name}" for name in self.below()}}


class FieldError(Answer):
    pointer: str = ""  # a JSON pointer into the request
    detail: str = ""


class Problem(Answer):
    """RFC 9457: why a request was refused, or why a run failed."""

    type: str = "about:blank"
    title: str = ""
    status: int | None = None
    code: str = ""
    detail: str = ""
    request_id: str = ""
    errors: tuple[FieldError, ...] = ()
