"""Progress: functions that report it, and that can end a task.

A Progress may raise RunCanceled, which ends the task like any other error. So a task reports as
often as it can end: after each block, and with unchanged numbers while it waits for another
process.
"""

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack

Progress = Callable[[int, int], None]  # done, total; may raise RunCanceled
EVERY_SECONDS = 10.0  # of progress, where there is no terminal
SILENT_SECONDS = 2.0  # of a step, before it is worth a line


def ignore_progress(done: int, total: int) -> None:
    """A Progress that does nothing."""


def watch_step(what: str, last: ExitStack, say: Callable[[str], None]) -> Progress:
    """A step begins, so the `last` one has ended. Says so after `SILENT_SECONDS`, again every
    `EVERY_SECONDS`, and how long it took; nothing of a shorter step. A thread does, since torch may
    be at work for half a minute without a word.
    """
    last.close()
    began, ended = time.monotonic(), threading.Event()
    done = total = 0

    def tell() -> None:
        if ended.wait(SILENT_SECONDS):
            return
        say(f"{what} …")
        while not ended.wait(EVERY_SECONDS):
            so_far = f"{done:,} of {total:,}, " if total else ""
            say(f"{what}: {so_far}{time.monotonic() - began:.0f} s so far")
        say(f"{what}: {time.monotonic() - began:.1f} s")

    def end() -> None:
        ended.set()
        teller.join()

    def note(now: int, of: int) -> None:
        nonlocal done, total
        done, total = now, of

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    last.callback(end)
    return note
