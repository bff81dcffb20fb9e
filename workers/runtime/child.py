"""`python -m workers.runtime.child PURPOSE`: the warm child of a worker.

It reads requests and answers them, and keeps models and JVMs in memory between works.
"""

import os
import signal

from workers import processes


def main() -> None:
    processes.die_with(int(os.environ.get("PRESCORE_PARENT", "0")))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    requests, answers = processes.private_pipes()
    from workers import jobs
    from workers.jobs.toolbox import Toolbox

    def progress(done: int, total: int) -> None:
        processes.write(answers, {"done": done, "total": total})

    toolbox = Toolbox.from_environment()
    while (request := processes.read(requests)) is not None:
        processes.write(answers, jobs.answer(request, toolbox, progress))


if __name__ == "__main__":
    main()
