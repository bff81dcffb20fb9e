"""Confinement of a child, and of all that it starts, by the kernel and for good.

Nothing is opened where a mechanism is missing (`explain_missing_sandbox`).
"""

import contextlib
import os
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from service.kernel import landlock, process_limits, seccomp_filter, system_calls
from service.kernel.landlock import READ, WORK, WRITE, LandlockRule
from service.kernel.process_limits import ChildLimits

# Where programs' libraries are, and what they ask of the machine. No file of it is anybody's.
_SYSTEM = (
    *("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"),
    *("/etc/localtime", "/usr/share/zoneinfo", "/dev/urandom", "/dev/zero"),
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm", "/sys/devices/system"),
    *("/sys/kernel/mm/transparent_hugepage", "/sys/fs/cgroup", "/proc/cgroups"),
)
# What libraries ask of their own process. Not the folder: the network's tables are in it.
_OF_ITSELF = (
    *("auxv", "cgroup", "coredump_filter", "fd", "limits", "maps", "mountinfo", "smaps", "stat"),
    *("statm", "status"),
)
_SELF = tuple(Path("/proc/self") / name for name in _OF_ITSELF)
_NOWHERE = Path("/dev/null")
KERNELS = frozenset({"landlock", "seccomp"})  # what a kernel may lack
MECHANISMS = KERNELS | {"limits", "privileges"}
_INSTALLED = ("site-packages", "dist-packages")


def list_skipped_mechanisms(sandbox: str) -> frozenset[str]:
    """The mechanisms that the setting leaves out: none, or all that a kernel may lack."""
    return KERNELS if sandbox == "off" else frozenset()


@dataclass(frozen=True)
class Confinement:
    """`reads` and `writes`: files, or folders with all in them; `works`: folders in which files may
    be made and deleted, too. `threads` and `memory_files`: may they be made? The latter have no
    place. `messages`: may it use the sockets that it has? `without`: mechanisms that are left out,
    by an operator's decision and in tests.
    """

    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    works: tuple[Path, ...] = ()
    threads: bool = False
    memory_files: bool = False
    messages: bool = False
    limits: ChildLimits = field(default_factory=ChildLimits)
    without: frozenset[str] = frozenset()

    def apply(self) -> None:
        """Confine this process. It must be young: other threads would stay as they are. Raises
        OSError or KeyError where the kernel does not do it; the caller must then end.
        """
        used = MECHANISMS - self.without
        if used and len(list(Path("/proc/self/task").iterdir())) > 1:
            raise OSError("a process with several threads cannot be confined")
        for each in _SELF:  # stay open, so that the kernel knows them by their rules
            with contextlib.suppress(FileNotFoundError):
                os.open(each, os.O_PATH)
        if "limits" in used:
            process_limits.apply_limits(self.limits)
        if "privileges" in used:
            process_limits.drop_privileges()
        if "seccomp" in used or "landlock" in used:
            seccomp_filter.forbid_new_privileges()
        if "landlock" in used:
            landlock.restrict_files(self._rules())
        if "seccomp" in used:
            seccomp_filter.restrict_calls(
                seccomp_filter.list_allowed_calls(
                    threads=self.threads,
                    memory_files=self.memory_files,
                    folders=bool(self.works),
                    messages=self.messages,
                )
            )

    def _rules(self) -> Iterable[LandlockRule]:
        shared = sysconfig.get_config_var("LIBDIR") or sys.base_prefix
        for path in (*list_libraries(), Path(shared), *map(Path, _SYSTEM), *_SELF, *self.reads):
            yield LandlockRule(path, READ)
        for path in (_NOWHERE, *self.writes):
            yield LandlockRule(path, WRITE)
        for path in self.works:
            yield LandlockRule(path, WORK)

    def as_json(self) -> dict[str, Any]:
        return {
            "reads": [str(path) for path in self.reads],
            "writes": [str(path) for path in self.writes],
            "threads": self.threads,
            "limits": vars(self.limits),
            "without": sorted(self.without),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "Confinement":
        return cls(
            tuple(map(Path, found["reads"])),
            tuple(map(Path, found["writes"])),
            threads=found["threads"],
            limits=ChildLimits(**found["limits"]),
            without=frozenset(found["without"]),
        )


def isolate_process() -> None:
    """Isolate a process that needs files and programs: forbid it, and all that it starts, TCP, to
    trace other processes, and to read their memory and environment; from Landlock 6 on their
    abstract sockets and signals to them, too. It must be young, as for `apply`. Raises OSError.
    """
    process_limits.drop_privileges(but_files=True)
    seccomp_filter.forbid_new_privileges()
    landlock.restrict_files(None)


def explain_missing_sandbox() -> str | None:
    """Why nothing can be confined on this machine, as a sentence; None if it can."""
    return (
        system_calls.explain_unknown_machine()
        or landlock.explain_missing_landlock()
        or seccomp_filter.explain_missing_seccomp()
    )


def list_libraries() -> list[Path]:
    """The folders of Python and of what is installed for it, in the order in which Python looks for
    modules. Not the others of `sys.path`: `python -m` has the folder that one is in among them, and
    that may be the home.
    """
    paths = sysconfig.get_paths()
    own = [Path(paths[name]) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    own += [Path(folder) / "lib-dynload" for folder in own]
    searched = [Path(each) for each in sys.path]
    found = [each for each in searched if each in own or each.name in _INSTALLED]
    return [each for each in dict.fromkeys([*found, *own]) if each.is_dir()]
