"""Child in the sandbox: `operations.py` starts it. It confines itself before it looks at anything
else than its call, then imports the operation's module, then looks at the input.
"""

import importlib
import mmap
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from prescore import plain_text
from service.kernel import process_limits
from service.kernel.confinement import Confinement
from workers import processes

# (input files, files to write, parameters) -> what to tell the parent, as JSON
Operation = Callable[[Sequence[Path], Sequence[Path], Mapping[str, Any]], Mapping[str, Any]]
Handler = Callable[[Mapping[str, Any]], Mapping[str, Any]]  # a request -> its answer
# (input files, parameters, shared memory) -> what to tell the parent first, and the handler of all
# requests to come
Opener = Callable[
    [Sequence[Path], Mapping[str, Any], memoryview], tuple[Mapping[str, Any], Handler]
]
MOST_TEXT = 1000  # characters of a problem


class InputRefused(Exception):
    """The input is not what the operation expects; the text is for who sent it."""


def main() -> None:
    processes.die_with_parent(int(sys.argv[1]))
    requests, answers = processes.open_private_pipes()
    call = processes.read_message(requests)
    os.chdir("/")
    # Libraries look for a folder of theirs when they are imported; nothing may be written anywhere.
    tempfile.tempdir = os.environ["TORCHINDUCTOR_CACHE_DIR"] = "/"
    operation = _confine(call)
    inputs, outputs = ([Path(each) for each in call[of]] for of in ("inputs", "outputs"))
    parameters = call["parameters"]
    if call["shared"] is None:
        requests.close()
        processes.write_message(answers, _answer(lambda: operation(inputs, outputs, parameters)))
        return
    descriptor, size = call["shared"]
    memory = memoryview(mmap.mmap(descriptor, size))
    handlers: list[Handler] = []

    def opened() -> Mapping[str, Any]:
        told: Mapping[str, Any]
        told, handler = operation(inputs, parameters, memory)
        handlers.append(handler)
        return told

    processes.write_message(answers, _answer(opened))
    while handlers and (request := processes.read_message(requests)) is not None:
        processes.write_message(answers, _answer(lambda: handlers[0](request)))


def _confine(call: Mapping[str, Any]) -> Any:
    """The operation (an Operation or an Opener), imported by a process that reaches nothing."""
    confinement = Confinement.from_json(call["confinement"])
    confinement.apply()
    module, _, name = call["operation"].partition(":")
    operation = getattr(importlib.import_module(module), name)
    if "limits" not in confinement.without:
        process_limits.limit_memory(confinement.limits.memory)
    return operation


def _answer(perform: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    try:
        return {"answer": perform()}
    except InputRefused as refused:
        return {"problem": plain_text.quoted(str(refused))[:MOST_TEXT]}
    except MemoryError:
        return {"problem": "it takes more memory than it may"}
