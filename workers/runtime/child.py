"""`python -m workers.runtime.child PURPOSE`: the warm child of a worker.

It reads requests and answers them, and keeps models and JVMs in memory between tasks. It needs no
network and no process but those that it starts, and is kept from them where the kernel can do that.
"""

import os
import signal
from pathlib import Path

from workers import processes
from workers.sandbox import confinement, operations

# CUDA starts a program with privileges where a device has no file yet, and a confined process may
# start none.
_NVIDIA = Path("/proc/driver/nvidia")


def main() -> None:
    processes.die_with_parent(int(os.environ.get("PRESCORE_PARENT", "0")))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    requests, answers = processes.open_private_pipes()
    confine_child()  # before torch starts threads
    from workers import jobs
    from workers.jobs.toolbox import Toolbox

    def progress(done: int, total: int) -> None:
        processes.write_message(answers, {"done": done, "total": total})

    converter = os.environ.get("PRESCORE_CONVERTER")
    operations.choose_converter(Path(converter) if converter else None)
    toolbox = Toolbox.from_environment()
    while (request := processes.read_message(requests)) is not None:
        processes.write_message(answers, jobs.answer_request(request, toolbox, progress))


def confine_child() -> None:
    if confinement.explain_missing_sandbox() is None and not _NVIDIA.exists():
        confinement.isolate_process()


if __name__ == "__main__":
    main()
