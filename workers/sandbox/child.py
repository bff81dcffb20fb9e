"""The child: `confined.py` starts it. It confines itself before it looks at anything else than its
task, then imports the operation's module, then looks at the input.
"""

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from service.contract import plain_text
from workers import processes
from workers.sandbox import limits
from workers.sandbox.confinement import Confinement

# (input files, files to write, parameters) -> what to tell the parent, as JSON
Operation = Callable[[Sequence[Path], Sequence[Path], Mapping[str, Any]], Mapping[str, Any]]
MOST_TEXT = 1000  # characters of a problem


class Refused(Exception):
    """The input is not what the operation expects; the text is for who sent it."""


def main() -> None:
    processes.die_with(int(sys.argv[1]))
    requests, answers = processes.private_pipes()
    task = processes.read(requests)
    requests.close()
    os.chdir("/")
    processes.write(answers, _answer(task))


def _answer(task: Mapping[str, Any]) -> Mapping[str, Any]:
    confinement = Confinement.from_json(task["confinement"])
    confinement.apply()
    module, _, name = task["operation"].partition(":")
    operation: Operation = getattr(importlib.import_module(module), name)
    if "limits" not in confinement.without:
        limits.limit_memory(confinement.limits.memory)
    try:
        inputs, outputs = ([Path(each) for each in task[of]] for of in ("inputs", "outputs"))
        return {"answer": operation(inputs, outputs, task["parameters"])}
    except Refused as refused:
        return {"problem": plain_text.quoted(str(refused))[:MOST_TEXT]}
    except MemoryError:
        return {"problem": "it takes more memory than it may"}
