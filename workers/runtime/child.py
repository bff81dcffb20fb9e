"""`python -m workers.runtime.child PURPOSE`: the warm child of a worker.

It reads requests and answers them, and keeps models and JVMs in memory between tasks. It needs no
network and no process but those that it starts, and is kept from them where the kernel can do that.
"""

import os
import signal
from pathlib import Path

from workers import processes
from workers.sandbox import confined, confinement

# CUDA starts a program with privileges where a device has no file yet, and a confined process may
# start none.
_NVIDIA = Path("/proc/driver/nvidia")


def main() -> None:
    processes.die_with(int(os.environ.get("PRESCORE_PARENT", "0")))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    requests, answers = processes.private_pipes()
    confine()  # before torch starts threads
    from workers import jobs
    from workers.jobs.toolbox import Toolbox

    def progress(done: int, total: int) -> None:
        processes.write(answers, {"done": done, "total": total})

    converter = os.environ.get("PRESCORE_CONVERTER")
    confined.choose(Path(converter) if converter else None)
    toolbox = Toolbox.from_environment()
    while (request := processes.read(requests)) is not None:
        processes.write(answers, jobs.answer(request, toolbox, progress))


def confine() -> None:
    if confinement.missing() is None and not _NVIDIA.exists():
        confinement.keep_from_others()


if __name__ == "__main__":
    main()
