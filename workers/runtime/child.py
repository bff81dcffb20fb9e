"""`python -m workers.runtime.child ROLE`: the warm child of a worker.

It reads requests, answers them, and keeps what is warm.
"""

import ctypes
import json
import os
import signal
import sys
from typing import Any, TextIO

_PR_SET_PDEATHSIG = 1


def main() -> None:
    _die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what libraries print is not an answer
    from workers import jobs
    from workers.jobs.toolbox import Toolbox

    def progress(done: int, total: int) -> None:
        _say(answers, {"done": done, "total": total})

    toolbox = Toolbox.from_environment()
    for line in sys.stdin:
        _say(answers, jobs.answer(json.loads(line), toolbox, progress))


def _say(answers: TextIO, message: dict[str, Any]) -> None:
    answers.write(json.dumps(message) + "\n")


def _die_with_parent() -> None:
    """A child whose parent is killed must not live on and hold the device."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if str(os.getppid()) != os.environ.get("PRESCORE_PARENT"):
        sys.exit("the parent is gone already")


if __name__ == "__main__":
    main()
