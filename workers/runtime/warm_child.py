"""Warm child of a worker, seen from the parent.

The child keeps torch, the last models or a JVM between tasks. The parent never imports them: it
sends a request, receives progress, and ends the child's whole process group when the task is
canceled, late or too large, or when the child has failed. The child reaches the files that it is
given, and nothing else; it asks the parent for other processes (`child_services`).
"""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import psutil

from service.contract import assets
from service.contract.assets import AssetFolders
from workers.processes import ChildGone, ChildProcess
from workers.runtime.child_services import ChildServices

# What chooses how this CPU computes is kept too: a command of the same environment, which computes
# by itself, then sums as the child does, to the last bit.
_KEPT = (
    *("PATH", "HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES"),
    *("OPENBLAS_CORETYPE", "MKL_CBWR", "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA"),
    *("NPY_DISABLE_CPU_FEATURES", "PYTHONPATH"),  # plug-ins may be installed there
)
# A thread that waits for others looks a thousand times, some microseconds, and then sleeps, since
# cores are shared. To sleep at once takes a fifth longer where they are not.
_SHARED_CORES = {"GOMP_SPINCOUNT": "1000"}
# Signals that a process does not cause by what it computes. The system sends the first one, too.
_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT}
# Where the system counts whom it killed for lack of memory: in this container, or on this machine.
_MEMORY_EVENTS = (Path("/sys/fs/cgroup/memory.events"), Path("/proc/vmstat"))
_LAST_OUTPUT = 4000  # bytes of the child's stderr that are kept
_LARGEST_ANSWER = 1 << 26  # bytes: the draws of all metrics take some hundred thousand


@dataclass(frozen=True)
class ChildProgress:
    done: int
    total: int


@dataclass(frozen=True)
class ChildAnswer:
    """The child's answer: a summary or an error."""

    content: Mapping[str, Any]


class ExitCause(Enum):
    """Cause of a child's end: its own task, the system for lack of memory, or somebody else."""

    OWN = "own"
    MEMORY = "memory"
    OUTSIDE = "outside"


@dataclass(frozen=True)
class ChildExit:
    how: str  # as text
    cause: ExitCause


class TaskExecutor(Protocol):
    """Executor of a runner's tasks: the warm child, or this process in tests."""

    peak_bytes: int

    def is_outdated(self) -> bool:
        """Tell if it must be started again before the next task."""
        ...

    def send(self, request: Mapping[str, Any]) -> None: ...

    def receive(self, seconds: float) -> ChildProgress | ChildAnswer | None:
        """The next message; None if there is none within `seconds`."""
        ...

    def memory(self) -> int: ...

    def processor_seconds(self) -> float:
        """Seconds of the processor so far, of all that computes tasks."""
        ...

    def end(self) -> ChildExit:
        """End at once."""
        ...

    def close(self) -> None: ...

    @property
    def last_output(self) -> str: ...


@dataclass(frozen=True)
class ChildFiles:
    """Files of a warm child: the folders with its inputs and its work, and where assets are."""

    inputs: Path
    work: Path
    places: AssetFolders

    def list_reads(self) -> list[Path]:
        """All that it may read, besides programs: what was registered last, too."""
        return [self.inputs, *assets.list_asset_files(self.places)]


class WarmChild:
    """A process `python -m workers.runtime.child`, in its own process group. `purpose` is its role,
    for those who look at processes.
    """

    def __init__(
        self,
        purpose: str,
        settings: Mapping[str, str],
        files: ChildFiles,
        services: ChildServices,
    ) -> None:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._files, self._reads, self._services = files, files.list_reads(), services
        own = {
            "PRESCORE_CHANNEL": str(services.descriptor),
            "PRESCORE_PARENT": str(os.getpid()),
            "PRESCORE_READS": json.dumps([str(path) for path in self._reads]),
            "TMPDIR": str(files.work),
        }
        command = [sys.executable, "-P", "-m", "workers.runtime.child", purpose]
        self._child = ChildProcess(
            command,
            {**_SHARED_CORES, **kept, **settings, **own},
            _LAST_OUTPUT,
            _LARGEST_ANSWER,
            [services.descriptor],
        )
        services.begin()
        self.peak_bytes = 0
        self._killed_before = count_out_of_memory_kills()

    @property
    def pid(self) -> int:
        return self._child.pid

    def send(self, request: Mapping[str, Any]) -> None:
        self._killed_before = count_out_of_memory_kills()
        self._child.send(request)

    def receive(self, seconds: float) -> ChildProgress | ChildAnswer | None:
        body = self._child.receive(seconds)
        if body is None:
            return None
        try:
            message = json.loads(body)
        except (ValueError, RecursionError):
            raise ChildGone("answered what is no JSON") from None
        match message:
            case {"done": int(done), "total": int(total)}:
                return ChildProgress(done, total)
            case dict():
                return ChildAnswer(message)
        raise ChildGone("answered something else than was asked")

    def is_outdated(self) -> bool:
        """Tell if other assets have been registered since it began, which it may not read."""
        return self._reads != self._files.list_reads()

    def memory(self) -> int:
        """Resident bytes now of the child, and of what was started for it; also updates
        `peak_bytes`.
        """
        now = 0
        for member in self._list_family():
            with contextlib.suppress(psutil.Error):
                now += member.memory_info().rss
        self.peak_bytes = max(self.peak_bytes, now)
        return now

    def processor_seconds(self) -> float:
        """Seconds of the processor so far, of the child and of what lives that it had started."""
        spent = 0.0
        for member in self._list_family():
            with contextlib.suppress(psutil.Error):
                times = member.cpu_times()
                spent += times.user + times.system
        return spent

    def _list_family(self) -> list[psutil.Process]:
        family = self._services.list_processes()
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(self.pid)
            family += [process, *process.children(recursive=True)]
        return family

    def end(self) -> ChildExit:
        how = f"the worker's child {self._child.end()}"
        self._services.close()
        code = self._child.ended_with
        if code == -signal.SIGKILL and count_out_of_memory_kills() > self._killed_before:
            return ChildExit(f"{how}, since memory was short", ExitCause.MEMORY)
        outside = code is not None and -code in _FROM_OUTSIDE
        return ChildExit(how, ExitCause.OUTSIDE if outside else ExitCause.OWN)

    def close(self) -> None:
        self._child.close()
        self._services.close()

    @property
    def last_output(self) -> str:
        return self._child.last_output


def count_out_of_memory_kills(places: Sequence[Path] = _MEMORY_EVENTS) -> int:
    """Count the processes that the system has killed for lack of memory, here or beside; 0 if
    unknown.
    """
    for place in places:
        with contextlib.suppress(OSError, ValueError):
            counts = dict(line.split() for line in place.read_text().splitlines())
            if "oom_kill" in counts:
                return int(counts["oom_kill"])
    return 0
