"""A small HTTP server that behaves as the interface says, so that the client meets real sockets.

It stands in for the service, which is written at the same time: the real one replaces it in later
tests. What a network does to a client is here on purpose, as faults: answers lost, cut or late.
"""

import hashlib
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass, field

from client.contract_routes import Handler, Refusal, Server, images_of


@dataclass
class Fault:
    """What happens to the next `times` requests that match, in place of an answer."""

    method: str
    path: str  # a part of it
    status: int = 0  # answer so, with `headers` and `body`
    headers: dict = field(default_factory=dict)
    body: object = b""  # bytes, or an object for a problem
    lose: str = ""  # "request": cut before it is read; "answer": done, but never told
    cut_upload: int = 0  # read so many bytes of the body and cut
    cut_answer: bool = False  # half of it
    cut_events: int | None = None  # so many events, half of the next one, and cut
    drain: bool = True  # read the body before answering with `status`
    times: int = 1


class ContractService:
    def __init__(self, key=None, port=0):
        self.key = key
        self.requests = []  # (method, path with query, headers)
        self.defects = []  # exceptions of the server itself
        self.faults = []
        self.checkpoints = {}  # digest -> bytes
        self.datasets = {}  # name -> list of versions, each (facts, bytes)
        self.evaluations = {}  # id -> the answer
        self.submissions = {}  # Idempotency-Key -> (request, id)
        self.versions = {}  # id -> its ETag's number
        self.events = {}  # id -> list of (number, name, data)
        self.retry = 10  # of events, ms; None: not said
        self.replays = False  # send all events again, whatever Last-Event-ID says
        self.answer_headers = {}  # on every evaluation
        self.holds = True  # honour Prefer: wait
        self.page = 2
        self.changed = threading.Condition()
        self.stopping = False
        self._connections = set()
        self._server = Server(("127.0.0.1", port), Handler)
        self._server.service = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}
        )

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        with self.changed:
            self.stopping = True
            self.changed.notify_all()
        self._server.shutdown()
        self._thread.join()
        self.cut_all()
        self._server.server_close()
        assert self.defects == []

    def cut_all(self):
        """Cut every connection that is open, as a restart does."""
        for connection in list(self._connections):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def seen(self, method, path=""):
        return [one for one in list(self.requests) if one[0] == method and path in one[1]]

    def wait_until(self, condition, seconds=120):
        """The server's own clock tick: every request notifies."""
        with self.changed:
            assert self.changed.wait_for(condition, seconds)

    def fault(self, method, path, **how):
        self.faults.append(Fault(method, path, **how))

    def start(self, **fields):
        """An evaluation that is there already."""
        with self.changed:
            id_ = f"ev_{len(self.evaluations) + 1}"
            self.evaluations[id_] = {
                "id": id_,
                "status": "running",
                "dataset": {"name": "shapes", "version": "v1", "digest": "d", "split": "test"},
                "checkpoint": None,
                "tasks": [],
                "scores": {},
                "warnings": [],
                "gates": [],
                "verdict": None,
                "forecast": None,
                "estimate": None,
                "health": None,
                "error": None,
                "labels": {},
                "created_at": "2026-01-02T03:04:05Z",
                "finished_at": None,
                "a_field_of_next_year": {"x": 1},
                **fields,
            }
            self.versions[id_] = 1
            self.events[id_] = []
            self.changed.notify_all()
        return id_

    def change(self, id_, **fields):
        with self.changed:
            self.evaluations[id_].update(fields)
            self.versions[id_] += 1
            self.changed.notify_all()

    def tell(self, id_, name, data):
        with self.changed:
            self.events[id_].append((len(self.events[id_]) + 1, name, data))
            self.changed.notify_all()

    def add_dataset(self, name, content):
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        versions = self.datasets.setdefault(name, [])
        for facts, stored in versions:
            if stored == content:
                return facts, False
        images = images_of(content)
        splits = {
            split: {
                "images": sum(one["split"] == split for one in images),
                "references": sum(
                    len(one["references"]) for one in images if one["split"] == split
                ),
            }
            for split in sorted({one["split"] for one in images})
        }
        facts = {
            "name": name,
            "version": f"v{len(versions) + 1}",
            "digest": digest,
            "splits": splits,
            "features": None,
            "created_at": "2026-01-02T03:04:05Z",
        }
        versions.append((facts, content))
        return facts, True

    def images(self, dataset):
        """Names of the split's images, or a refusal."""
        name, _, split = dataset.partition("/")
        name, _, version = name.partition("@")
        for facts, content in reversed(self.datasets.get(name, [])):
            if version in ("", facts["version"]) and split in facts["splits"]:
                return facts, {one["image"] for one in images_of(content) if one["split"] == split}
        raise Refusal(404, f"no dataset {dataset}", [("/dataset", "unknown")])


def score(value, **more):
    base = {"family": "postgen", "higher_is_better": True, "interval": None, "signature": "s"}
    return {"value": value, **base, **more}


def task(name, status="done", done=1, total=1, **more):
    base = {"attempts": 1, "seconds": 0.5, "cached": False, "error": None}
    progress = {"done": done, "total": total}
    return {"name": name, "kind": name, "status": status, "progress": progress, **base, **more}
