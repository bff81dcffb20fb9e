"""How commands end, by what the reader can do about it. The same in every command."""

from prescore.errors import (
    InvalidArgument,
    PrescoreClientError,
    Refused,
    ServiceError,
    Unreachable,
)
from prescore.http.retries import PASSING

DONE = 0
NO = 1  # the answer is no: a gate failed, two programs do not agree
REFUSED = 2  # the command, or what it asks for, is wrong: change it
FAILED = 3  # the run failed, was canceled, has not ended in time or gave nothing
UNREACHABLE = 4
INTERRUPTED = 130


def of(error: PrescoreClientError) -> int:
    match error:
        case Unreachable() | ServiceError():
            return UNREACHABLE
        case Refused() if error.status in PASSING:  # only after `patience` seconds
            return UNREACHABLE
        case Refused() | InvalidArgument():
            return REFUSED
        case _:
            return FAILED
