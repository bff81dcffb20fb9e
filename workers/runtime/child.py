"""`python -m workers.runtime.child PURPOSE`: the warm child of a worker.

It reads requests and answers them, and keeps models in memory between tasks. What strangers send is
its input, so it reaches nothing but these files, its own folder and the libraries, where the kernel
can do that. The parent starts for it what else it needs (`service_channel`).
"""

import json
import os
import signal
import sys
from pathlib import Path

from service.kernel import confinement
from service.kernel.confinement import Confinement
from service.kernel.process_limits import ChildLimits
from workers import processes
from workers.runtime.service_channel import ServiceChannel
from workers.sandbox import children, operations

# CUDA starts a program with privileges where a device has no file yet, and a confined process may
# start none.
_NVIDIA = Path("/proc/driver/nvidia")
_LIMITS = ChildLimits(cpu_seconds=None, file_size=64_000_000_000, files=1024)


def main() -> None:
    processes.die_with_parent(int(os.environ.get("PRESCORE_PARENT", "0")))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    requests, answers = processes.open_private_pipes()
    reads = [Path(each) for each in json.loads(os.environ["PRESCORE_READS"])]
    confine_child(reads, Path(os.environ["TMPDIR"]))  # before torch starts threads
    from workers import jobs
    from workers.jobs.toolbox import Toolbox

    def progress(done: int, total: int) -> None:
        processes.write_message(answers, {"done": done, "total": total})

    channel = ServiceChannel(int(os.environ["PRESCORE_CHANNEL"]))
    operations.choose_converter(channel)
    toolbox = Toolbox.of_warm_child(channel.open_jvm)
    while (request := processes.read_message(requests)) is not None:
        processes.write_message(answers, jobs.answer_request(request, toolbox, progress))


def confine_child(reads: list[Path], work: Path) -> None:
    """Confine this process to what it may read, its folder, and the libraries that Python finds."""
    if explain_unconfined_child() is not None:
        return
    libraries = [Path(each) for each in sys.path if Path(each).is_absolute()]
    Confinement(
        (*reads, *libraries, *children.OUR_PACKAGES),
        works=(work,),
        threads=True,
        memory_files=True,
        messages=True,
        limits=_LIMITS,
    ).apply()


def explain_unconfined_child() -> str | None:
    """Why a warm child is not confined on this machine, as a sentence; None if it is."""
    if _NVIDIA.exists():
        return "this machine has NVIDIA's driver, and CUDA starts programs"
    return confinement.explain_missing_sandbox()


if __name__ == "__main__":
    main()
