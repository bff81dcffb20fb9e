"""Exit codes, by what the reader can do about them; the same in every command."""

from prescore.errors import (
    Answered,
    InvalidArgument,
    PrescoreClientError,
    Refused,
    ServiceError,
    Unreachable,
)

TOO_MANY = 429
BUSY = 503
DONE = 0
NO = 1  # the answer is no: a gate failed, two programs do not agree
REFUSED = 2  # the command, or what it asks for, is wrong: change it
FAILED = 3  # the run failed, was canceled, has not ended in time or gave nothing; or not now
UNREACHABLE = 4  # no answer, or none of a service that works
INTERRUPTED = 130


def is_for_now(error: PrescoreClientError) -> bool:
    """Check that the service does not take the request now but may later, as when its queue is
    full. A 503 without a code is of a proxy whose service is away.
    """
    if not isinstance(error, Answered):
        return False
    return error.status == TOO_MANY or (error.status == BUSY and bool(error.code))


def choose_code(error: PrescoreClientError) -> int:
    match error:
        case Answered() if is_for_now(error):  # only after `patience` seconds
            return FAILED
        case Unreachable() | ServiceError():
            return UNREACHABLE
        case Refused() | InvalidArgument():
            return REFUSED
        case _:
            return FAILED
