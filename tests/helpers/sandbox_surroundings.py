"""What a hostile child would reach: a home with a record, sockets, and a process beside it."""

import contextlib
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STREAM, PACKETS = socket.SOCK_STREAM, socket.SOCK_DGRAM


@contextlib.contextmanager
def surroundings(folder: Path) -> Iterator[dict[str, Any]]:
    """The parameters of `hostile_child.attack`."""
    home = folder / "home"
    (home / "mounted").mkdir(parents=True)
    for name in ("record.sqlite", "old", "older"):
        (home / name).write_bytes(b"secret" * 100)
    (folder / "input").write_bytes(b"input")
    (folder / "output").mkdir()
    abstract = f"prescore-{os.urandom(8).hex()}"
    with contextlib.ExitStack() as opened:
        tcp = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        udp = opened.enter_context(socket.socket(type=PACKETS))
        udp.bind(("127.0.0.1", 0))
        for kind, name in ((STREAM, home / "redis"), (PACKETS, home / "packets")):
            opened.enter_context(_bound(kind, str(name)))
        opened.enter_context(_bound(STREAM, f"\0{abstract}"))
        beside = opened.enter_context(subprocess.Popen(["sleep", "600"]))
        opened.callback(beside.kill)
        first = Path(f"/proc/{beside.pid}/maps").read_text().partition("-")[0]
        yield {
            "home": str(home),
            "victim": beside.pid,
            "memory": [beside.pid, int(first, 16)],
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "redis": str(home / "redis"),
            "packets": str(home / "packets"),
            "abstract": abstract,
            "input": str(folder / "input"),
            "output": str(folder / "output" / "file"),
        }
        assert beside.poll() is None, "the process beside has ended"


def _bound(kind: socket.SocketKind, address: str) -> socket.socket:
    one = socket.socket(socket.AF_UNIX, kind)
    one.bind(address)
    if kind == STREAM:
        one.listen()
    return one
