"""A small HTTP server that answers as a test scripts it, so that the client meets real sockets.

It plays states and faults that a real service cannot be brought to in a test: answers lost, cut or
late, runs whose tasks and scores change at the moment that the test says. It takes whatever comes:
rules of the service are tested against the real one.
"""

import base64
import itertools
import json
import re
import socket
import sys
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

from service.contract.api.evaluations import EvaluationRequest

FIELDS = set(EvaluationRequest.model_fields)
ENDED = ("succeeded", "failed", "canceled")


def score(value, **more):
    base = {"family": "postgen", "higher_is_better": True, "interval": None, "signature": "s"}
    return {"value": value, **base, **more}


def task(name, status="done", done=1, total=1, **more):
    base = {"attempts": 1, "seconds": 0.5, "cached": False, "error": None}
    progress = {"done": done, "total": total}
    return {"name": name, "kind": name, "status": status, "progress": progress, **base, **more}


def dataset(name, *splits):
    counts = {split: {"images": 2, "references": 4} for split in splits}
    return {"name": name, "version": "v1", "splits": counts}


METRICS = [{"name": name} for name in ("cider_d", "spice", "meteor", "nneval")]
PREGEN = {"scores": {"perplexity": score(12.5, family="pregen", higher_is_better=False)}}
CAPTIONS = [
    {"image": f"{n}.jpg", "caption": f"number {n}", "scores": {"cider_d": n / 10}} for n in range(5)
]


@contextmanager
def meanwhile(action):
    thread = threading.Thread(target=action)
    thread.start()
    yield
    thread.join()


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


class _Cut(Exception):
    pass


class ScriptedService:
    def __init__(self):
        self.requests = []  # (method, path with query, headers)
        self.defects = []  # exceptions of the server itself
        self.faults = []
        self.checkpoints = {}  # digest -> bytes
        self.datasets = {"shapes": dataset("shapes", "test", "val")}
        self.evaluations = {}  # id -> the answer
        self.submissions = {}  # Idempotency-Key -> (request, id)
        self.versions = Counter()  # id -> its ETag's number
        self.events = {}  # id -> list of (number, name, data)
        self.retry = 10  # of events, ms
        self.replays = False  # send all events again, whatever Last-Event-ID says
        self.answer_headers = {}  # on every evaluation
        self.holds = True  # honour Prefer: wait
        self.page = 2
        self.changed = threading.Condition()
        self.stopping = False
        self._connections = set()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.service = self
        poll = {"poll_interval": 0.02}
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs=poll)

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
        pinned = {"name": "shapes", "version": "v1", "digest": "d", "split": "test"}
        with self.changed:
            id_ = f"ev_{len(self.evaluations) + 1}"
            self.evaluations[id_] = {
                "id": id_,
                "status": "running",
                "dataset": pinned,
                "checkpoint": None,
                "tasks": [],
                "scores": {},
                "warnings": [],
                "gates": [],
                "labels": {},
                **dict.fromkeys(("verdict", "forecast", "estimate", "health", "error")),
                "created_at": "2026-01-02T03:04:05Z",
                "finished_at": None,
                "a_field_of_next_year": {"x": 1},
                **fields,
            }
            self.events[id_] = []
        self.change(id_)
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

    @property
    def sent(self):
        """The requests of runs, each once."""
        return [request for request, _ in self.submissions.values()]

    @property
    def keys(self):
        """Idempotency-Keys, in the order in which requests came."""
        return [headers["Idempotency-Key"] for _, _, headers in self.seen("POST")]

    def ending(self, id_="ev_1", **fields):
        """Meanwhile, at the client's first look, the run becomes so."""

        def end():
            self.wait_until(lambda: self.seen("GET", id_))
            self.change(id_, **fields)

        return meanwhile(end)

    def ended(self, id_):
        return self.stopping or self.evaluations[id_]["status"] in ENDED

    def submit(self, request, key):
        """The id of a run, and whether the key was there."""
        with self.changed:
            if is_known := key in self.submissions:
                assert self.submissions[key][0] == request
            else:
                self.submissions[key] = (request, self._start(request))
            return self.submissions[key][1], is_known

    def _start(self, request):
        assert set(request) <= FIELDS
        name, _, split = request["dataset"].partition("/")
        return self.start(
            dataset={"name": name, "version": "v1", "digest": "d", "split": split},
            checkpoint=request.get("checkpoint"),
            labels=request.get("labels", {}),
            gates=[{"gate": text, "verdict": None} for text in request.get("gates", ())],
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def handle_error(self, request, client_address):  # noqa: ARG002  the base's
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.service.defects.append(error)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fault = None

    def setup(self):
        super().setup()
        self.service = self.server.service
        self.service._connections.add(self.connection)

    def finish(self):
        self.service._connections.discard(self.connection)
        super().finish()

    def log_message(self, *_):
        pass

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except (_Cut, OSError):
            self.close_connection = True
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    def _serve(self):
        self.query = dict(parse_qsl(urlsplit(self.path).query))
        with self.service.changed:
            self.service.requests.append((self.command, self.path, dict(self.headers)))
            self.service.changed.notify_all()
            self.fault = self._take_fault()
        if self.fault and self._play_fault():
            return
        self._route()

    do_GET = do_HEAD = do_PUT = do_POST = _serve  # noqa: N815  the base's names

    def _take_fault(self):
        for fault in self.service.faults:
            if fault.method == self.command and fault.path in self.path and fault.times > 0:
                fault.times -= 1
                return fault
        return None

    def _play_fault(self):
        """Whether the fault is the answer."""
        fault = self.fault
        if fault.lose == "request":
            raise _Cut
        if fault.cut_upload:
            self.rfile.read(fault.cut_upload)
            raise _Cut
        if fault.status:
            if fault.drain:
                self._read_body()
            else:
                self.close_connection = True
            body = fault.body if isinstance(fault.body, bytes) else json.dumps(fault.body).encode()
            self._send(fault.status, body, fault.headers)
        return bool(fault.status)

    def _route(self):
        path = urlsplit(self.path).path  # as sent: what is quoted stays one segment
        for method, pattern, action in _ROUTES:
            if method == self.command and (found := re.fullmatch(pattern, path)):
                named = [unquote(group) for group in found.groups()]
                if pattern.startswith(_RUN) and named[0] not in self.service.evaluations:
                    self._send_not_found(f"evaluation {named[0]}")
                else:
                    action(self, *named)
                return
        self._send_not_found(path)

    def _send_not_found(self, what):
        self._read_body()
        problem = {"title": "Not Found", "status": 404, "detail": f"no {what}"}
        self._send_json(problem, 404, {"Content-Type": "application/problem+json"})

    def _read_body(self):
        assert "Transfer-Encoding" not in self.headers
        length = int(self.headers.get("Content-Length", 0))
        content = self.rfile.read(length)
        if len(content) < length:
            raise _Cut
        return content

    def _send_json(self, value, status=200, headers=None):
        headers = {"Content-Type": "application/json", **(headers or {})}
        self._send(status, json.dumps(value).encode(), headers)

    def _send(self, status, body, headers):
        if self.fault and self.fault.lose == "answer":
            raise _Cut
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.fault and self.fault.cut_answer:
            self.wfile.write(body[: len(body) // 2])
            raise _Cut
        if self.command != "HEAD" and status not in (204, 304):
            self.wfile.write(body)

    def _send_page(self, items):
        start = int(base64.b64decode(self.query.get("cursor", "MA==")))
        end = start + int(self.query.get("limit", self.service.page))
        following = base64.b64encode(str(end).encode()).decode() if end < len(items) else None
        self._send_json({"items": items[start:end], "next": following})

    # Checkpoints and datasets

    def head_checkpoint(self, digest):
        self._send(200 if digest in self.service.checkpoints else 404, b"", {})

    def put_checkpoint(self, digest):
        self.service.checkpoints[digest] = self._read_body()
        self._send_json({"digest": digest}, 201)

    def get_dataset(self, name):
        if name in self.service.datasets:
            self._send_json(self.service.datasets[name])
        else:
            self._send_not_found(f"dataset {name}")

    # Evaluations

    def submit(self):
        request = json.loads(self._read_body())
        key = re.fullmatch(r'"((?:[^"\\]|\\.)*)"', self.headers["Idempotency-Key"])[1]
        id_, replayed = self.service.submit(request, key)
        if (seconds := self._preferred_wait()) is not None:
            with self.service.changed:
                self.service.changed.wait_for(lambda: self.service.ended(id_), seconds)
        headers = {"Idempotency-Replayed": "true"} if replayed else {}
        self._send_json(self.service.evaluations[id_], 202, headers)

    def _preferred_wait(self):
        found = re.search(r"wait=(\d+)", self.headers.get("Prefer", ""))
        return int(found[1]) if found else None

    def list_evaluations(self):
        asked = {name: value for name, value in self.query.items() if name.startswith("label.")}

        def is_wanted(one):
            labels = {f"label.{name}": value for name, value in one["labels"].items()}
            return asked.items() <= labels.items()

        self._send_page([one for one in self.service.evaluations.values() if is_wanted(one)])

    def get_evaluation(self, id_):
        service, seconds = self.service, self._preferred_wait()
        known = self.headers.get("If-None-Match")

        def etag():
            return f'"{id_}.{service.versions[id_]}"'

        with service.changed:
            if known == etag() and seconds and service.holds:
                service.changed.wait_for(lambda: known != etag() or service.stopping, seconds)
            headers = {"ETag": etag(), **service.answer_headers}
            answer = json.loads(json.dumps(service.evaluations[id_]))
        if known == headers["ETag"]:
            self._send(304, b"", headers)
        else:
            self._send_json(answer, 200, headers)

    def cancel(self, id_):
        self._read_body()
        if not self.service.ended(id_):
            self.service.change(id_, status="canceled")
        self._send_json(self.service.evaluations[id_], 202)

    def stream_events(self, id_):
        last = 0 if self.service.replays else int(self.headers.get("Last-Event-ID", 0))
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(b"retry: %d\n\n" % self.service.retry)
        for sent, (number, name, data) in enumerate(self._events_after(id_, last)):
            text = json.dumps(data, ensure_ascii=False)
            lines = f": hello\nid: {number}\nevent: {name}\ndata: {text}\n\n".encode()
            if self.fault and sent == self.fault.cut_events:
                self.wfile.write(lines[:-3])
                raise _Cut
            self.wfile.write(lines)
            if name == "end":
                return

    def _events_after(self, id_, last):
        events, service = self.service.events[id_], self.service
        for number in itertools.count(last):
            with service.changed:
                while len(events) <= number and not service.stopping:
                    service.changed.wait()
                if service.stopping:
                    return
            yield events[number]


_RUN = "/v1/evaluations/([^/]+)"
_ROUTES = (
    ("HEAD", "/v1/checkpoints/([^/]+)", _Handler.head_checkpoint),
    ("PUT", "/v1/checkpoints/([^/]+)", _Handler.put_checkpoint),
    ("GET", "/v1/datasets/([^/]+)", _Handler.get_dataset),
    ("GET", "/v1/datasets", lambda self: self._send_page([*self.service.datasets.values()])),
    ("POST", "/v1/evaluations", _Handler.submit),
    ("GET", "/v1/evaluations", _Handler.list_evaluations),
    ("GET", _RUN, _Handler.get_evaluation),
    ("POST", f"{_RUN}/cancel", _Handler.cancel),
    ("GET", f"{_RUN}/events", _Handler.stream_events),
    ("GET", f"{_RUN}/pregen", lambda self, _: self._send_json(PREGEN)),
    ("GET", f"{_RUN}/captions", lambda self, _: self._send_page(CAPTIONS)),
    ("GET", "/v1/metrics", lambda self: self._send_page(METRICS)),
)
