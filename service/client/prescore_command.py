"""Entry point of the `prescore` command: a Ctrl-C is heeded before the package is imported.

It is a module of its own, since to import any module of a package imports the package first.
"""

import os
import signal
from types import FrameType

INTERRUPTED = 130  # as in prescore.exit_codes, which is not imported yet
_IMPORTING = "<frozen importlib._bootstrap>"
_AGAIN_SECONDS = 0.02


def main() -> None:
    ignored = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    if not ignored:
        signal.signal(signal.SIGINT, _end)
    from prescore.commands import build

    app = build()
    if not ignored:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        app()
    except KeyboardInterrupt:  # before a command has begun, which heeds it itself
        _end()


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, after an import that is under way: inside one, an exception may
    become another one. A second Ctrl-C during that import ends the process.
    """
    if not _is_importing(frame):
        raise KeyboardInterrupt
    if number == signal.SIGINT and signal.getitimer(signal.ITIMER_REAL)[0]:
        _end()
    signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_SECONDS)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None and frame.f_code.co_filename != _IMPORTING:
        frame = frame.f_back
    return frame is not None


def _end(*_: object) -> None:
    """Not by an exception: a module that is half imported would make another one of it."""
    os.write(2, b"stopped\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
