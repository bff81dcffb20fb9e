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
        self.status = problem.status
        self.type = problem.type
        self.title = problem.title
        self.code = problem.code
        self.detail = problem.detail
        self.request_id = problem.request_id
        self.errors = tuple(problem.errors)

    def __str__(self) -> str:
        return self.format_lines(str)

    def format_lines(self, place: Callable[[str], str]) -> str:
        """Format its lines, no sentence twice; `place` locates a JSON pointer."""
        heading = " ".join(filter(None, (str(self.status or ""), quoted(self.title))))
        detail, errors = self._detail(place)
        lines = [": ".join(filter(None, (heading, quoted(detail))))]
        lines += [quoted(f"  {_format_field_error(place, one)}") for one in errors[:_SHOWN]]
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
        return before + (only.detail if named else _format_field_error(place, only)), ()


def _format_field_error(place: Callable[[str], str], one: FieldError) -> str:
    """Format an error after its place; sentences about files begin with their place themselves."""
    where = place(one.pointer)
    begins, colon, _ = one.detail.partition(": ")
    parts = [part.replace("~1", "/").replace("~0", "~") for part in one.pointer.split("/")]
    names = [f"line {part}" if part.isdecimal() else part for part in parts if part]
    known = names if where == one.pointer else [where]
    words = (rf"(?<![\w.]){re.escape(name)}(?![\w.])" for name in known)
    is_named = colon and any(re.search(word, begins) for word in words)
    return one.detail if is_named or not where else f"{where}: {one.detail}"


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
