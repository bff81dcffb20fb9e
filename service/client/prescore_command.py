"""Where the `prescore` command begins: a Ctrl-C is heeded before the package is imported.

It is a module of its own, since to import any module of a package imports the package first.
"""

import os
import signal

INTERRUPTED = 130  # as in prescore.exit_codes, which is not imported yet


def main() -> None:
    ignored = signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    if not ignored:
        signal.signal(signal.SIGINT, _end)
    from prescore.commands import build

    app = build()
    if not ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    app()


def _end(number: int, frame: object) -> None:  # noqa: ARG001  the signature of a handler
    """Not by an exception: a module that is half imported would make another one of it."""
    os.write(2, b"stopped\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
