"""Memory of a runner's tasks: a limit for each task, and one for all tasks of a machine together.

Each runner of a home notes in a file how much its child has. Where all of them have too much, the
one that has most gives way; it is the only one that knows.
"""

import contextlib
import socket
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True)
class MemoryExcess:
    """`is_alone`: the task by itself takes too much, and would again."""

    detail: str
    is_alone: bool


@dataclass
class MemoryShare:
    """`limit`: bytes of one task; `together`: of all tasks of a machine whose runners note theirs
    in `folder`. `name`: of the runner, as `presence.name_worker` gives it, and more.
    """

    limit: int
    together: int
    folder: Path
    name: str

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)

    def find_excess(self, now: int) -> MemoryExcess | None:
        """Note that this runner's child has so many bytes; tell if its task has to end."""
        self._note(now)
        if now > self.limit:
            detail = f"the task took {_mb(now)}, the limit is {_mb(self.limit)}"
            return MemoryExcess(detail, is_alone=True)
        sizes = self._read_sizes()
        total = sum(sizes.values())
        if total <= self.together or max(sizes, key=lambda name: (sizes[name], name)) != self.name:
            return None
        detail = f"the tasks of this machine took {_mb(total)}, this one most of it ({_mb(now)}); "
        detail += f"the limit is {_mb(self.together)} together"
        return MemoryExcess(detail, is_alone=False)

    def forget(self) -> None:
        (self.folder / self.name).unlink(missing_ok=True)

    def _note(self, now: int) -> None:
        written = self.folder / f".{self.name}"
        written.write_text(str(now))
        written.rename(self.folder / self.name)

    def _read_sizes(self) -> dict[str, int]:
        """Read the sizes of this machine's runners, and forget those that have died."""
        sizes = {}
        for path in self.folder.glob(f"[!.]*{socket.gethostname()}:*"):
            pid = path.name.rpartition(":")[2].partition("-")[0]
            if not psutil.pid_exists(int(pid)):
                path.unlink(missing_ok=True)
                continue
            with contextlib.suppress(FileNotFoundError):
                sizes[path.name] = int(path.read_text())
        return sizes


def _mb(size: int) -> str:
    return f"{size / 1e6:.0f} MB"
