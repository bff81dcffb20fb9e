"""Every error of the client, by what the reader can do about it.

    PrescoreClientError
    ├── InvalidArgument   a wrong argument, nothing was sent: change the call (also a ValueError)
    ├── Unreachable       no answer: look at the URL, the network, the service
    ├── Refused           4xx: change the request; `errors` point to the wrong fields
    ├── ServiceError      5xx, or not an answer of Prescore: tell the operator
    └── TimedOut          `timeout` is over; the run itself goes on

A run that fails raises none of these: its status says so. All of them can be
pickled, since training programs send them between processes. Each line of their
text is plain, whatever the service said.
"""

import re
from collections.abc import Callable

from prescore.models import FieldError, Problem, Run
from prescore.plain_text import quoted

_SHOWN = 20  # places that a message shows; all are in `errors`


class PrescoreClientError(Exception):
    pass


class InvalidArgument(PrescoreClientError, ValueError):
    pass


class Unreachable(PrescoreClientError):
    def __init__(self, url: str, reason: str) -> None:
        super().__init__(url, reason)
        self.url = url
        self.reason = reason

    def __str__(self) -> str:
        return (
            f"no answer from {self.url} ({quoted(self.reason)})\n"
            "Is the service running there (`prescore serve`), is PRESCORE_URL or --url right, "
            "does a proxy or a firewall block it?"
        )


class Answered(PrescoreClientError):
    """An error that the service answered; `retry_after` in seconds, if the service gave it."""

    def __init__(self, problem: Problem, retry_after: float | None = None) -> None:
        super().__init__(problem, retry_after)
        self.problem = problem
        self.retry_after = retry_after

    @property
    def status(self) -> int:
        return self.problem.status

    @property
    def type(self) -> str:
        return self.problem.type

    @property
    def title(self) -> str:
        return self.problem.title

    @property
    def code(self) -> str:
        return self.problem.code

    @property
    def detail(self) -> str:
        return self.problem.detail

    @property
    def request_id(self) -> str:
        return self.problem.request_id

    @property
    def errors(self) -> tuple[FieldError, ...]:
        return tuple(self.problem.errors)

    def __str__(self) -> str:
        return self.told(str)

    def told(self, place: Callable[[str], str]) -> str:
        """Its lines; `place` says where a JSON pointer leads. No sentence stands there twice."""
        said = " ".join(filter(None, (str(self.status or ""), quoted(self.title))))
        detail, errors = self._detail(place)
        lines = [": ".join(filter(None, (said, quoted(detail))))]
        lines += [quoted(f"  {_at(place, one)}") for one in errors[:_SHOWN]]
        if len(errors) > _SHOWN:
            lines.append(f"  and {len(errors) - _SHOWN} more")
        if self.request_id:
            lines.append(f"  (request {quoted(self.request_id)})")
        return "\n".join(lines)

    def _detail(self, place: Callable[[str], str]) -> tuple[str, tuple[FieldError, ...]]:
        """The detail, and the wrong fields that it does not tell itself."""
        if len(self.errors) != 1 or not self.errors[0].detail:
            return self.detail, self.errors
        only = self.errors[0]
        if not self.detail.endswith(only.detail):
            return self.detail, self.errors
        before = self.detail.removesuffix(only.detail).removesuffix(f"{only.pointer}: ")
        where = place(only.pointer)
        named = not where or before.startswith(f"{where} ")
        return before + (only.detail if named else _at(place, only)), ()


def _at(place: Callable[[str], str], one: FieldError) -> str:
    """What is wrong, after its place; sentences about files begin with their place themselves."""
    where = place(one.pointer)
    begins, colon, _ = one.detail.partition(": ")
    parts = [part.replace("~1", "/").replace("~0", "~") for part in one.pointer.split("/")]
    names = [f"line {part}" if part.isdecimal() else part for part in parts if part]
    known = names if where == one.pointer else [where]
    told = colon and any(_has_word(begins, name) for name in known)
    return one.detail if told or not where else f"{where}: {one.detail}"


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(word)}(?![\w.])", text) is not None


class Refused(Answered):
    pass


class ServiceError(Answered):
    pass


class TimedOut(PrescoreClientError):
    """`timeout` seconds were over before the run had ended; `run`: as it was last seen."""

    def __init__(self, run: Run, seconds: float) -> None:
        super().__init__(run, seconds)
        self.run = run
        self.seconds = seconds

    def __str__(self) -> str:
        return (
            f"{self.run.id} is still {quoted(self.run.status)} after {self.seconds:g} s; "
            "it goes on in the service"
        )
