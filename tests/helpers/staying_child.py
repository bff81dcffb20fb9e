"""Openers for children that stay in the sandbox, good and hostile."""

import fcntl
import os
import threading
from pathlib import Path

from workers.sandbox.child import InputRefused


def _shared_descriptor():
    for each in Path("/proc/self/fd").iterdir():
        if "memfd" in str(each.readlink()):
            return int(each.name)
    return None


def serve(inputs, parameters, memory):
    """Answers requests by their names; "length" counts how often it was asked."""
    asked = []

    def answer(request):
        asked.append(request["do"])
        return OPERATIONS[request["do"]](request, memory) | {"length": len(asked)}

    return {"opened": [path.read_text() for path in inputs], **parameters}, answer


def refuse(inputs, parameters, memory):
    raise InputRefused("a text\nof two lines")


def _double(request, memory):
    size = request["bytes"]
    memory[:size] = bytes(2 * each for each in memory[:size])
    return {}


def _refuse(request, memory):
    raise InputRefused("not this one")


def _wait(request, memory):
    threading.Event().wait()


def _allocate(request, memory):
    return {"bytes": len(bytearray(request["bytes"]))}


def _cut(request, memory):
    """What the parent could die of, were it allowed: the memory that it reads is gone."""
    found = {}
    for size in (0, 1 << 30):
        try:
            os.ftruncate(_shared_descriptor(), size)
            found[str(size)] = "reached"
        except OSError as error:
            found[str(size)] = os.strerror(error.errno)
    try:
        fcntl.fcntl(_shared_descriptor(), fcntl.F_GET_SEALS)
        found["seals"] = "reached"
    except OSError as error:
        found["seals"] = os.strerror(error.errno)
    return found


def _surroundings(request, memory):
    files = sorted({str(each.readlink()).split(":")[0] for each in _descriptors()})
    return {"environment": sorted(os.environ), "files": files}


def _descriptors():
    for each in Path("/proc/self/fd").iterdir():
        if each.is_symlink() and int(each.name) > 2:
            yield each


def _end(request, memory):
    os._exit(3)


OPERATIONS = {
    "double": _double,
    "refuse": _refuse,
    "wait": _wait,
    "allocate": _allocate,
    "cut": _cut,
    "surroundings": _surroundings,
    "end": _end,
}
