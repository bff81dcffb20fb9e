"""The routes of the interface, as `contract_service` serves them; and its faults."""

import base64
import hashlib
import io
import itertools
import json
import re
import socket
import sys
import tarfile
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

FIELDS = {
    *("checkpoint", "captions", "dataset", "pregen", "postgen", "tokenizer", "decoding", "subset"),
    *("precision", "tokens", "columns"),
    *("gates", "baseline", "if_no_baseline", "until", "trust", "labels", "deadline"),
}


class Refusal(Exception):
    def __init__(self, status, detail, errors=()):
        super().__init__(detail)
        self.problem = {
            "type": "about:blank",
            "title": "Refused",
            "status": status,
            "code": "refused",
            "detail": detail,
            "request_id": "req_1",
            "errors": [{"pointer": pointer, "detail": text} for pointer, text in errors],
        }


def images_of(content):
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        lines = archive.extractfile("captions.jsonl").read().splitlines()
    return [json.loads(line) for line in lines]


class Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def handle_error(self, request, client_address):  # noqa: ARG002  the base's
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.service.defects.append(error)


class _Cut(Exception):
    pass


class Handler(BaseHTTPRequestHandler):
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

    def do_GET(self):
        self._serve("GET")

    def do_HEAD(self):
        self._serve("HEAD")

    def do_PUT(self):
        self._serve("PUT")

    def do_POST(self):
        self._serve("POST")

    def _serve(self, method):
        self.method = method
        self.read = False
        self.query = dict(parse_qsl(urlsplit(self.path).query))
        with self.service.changed:
            self.service.requests.append((method, self.path, dict(self.headers)))
            self.service.changed.notify_all()
            self.fault = self._due()
        if self.fault and self._is_over(self.fault):
            return
        try:
            self._allowed()
            self._routed(method)(self)
        except Refusal as refusal:
            self._drain()
            self._problem(refusal.problem)

    def _due(self):
        for fault in self.service.faults:
            if fault.method == self.method and fault.path in self.path and fault.times > 0:
                fault.times -= 1
                return fault
        return None

    def _is_over(self, fault):
        if fault.lose == "request":
            raise _Cut
        if fault.cut_upload:
            self.rfile.read(fault.cut_upload)
            raise _Cut
        if not fault.status:
            return False
        if fault.drain:
            self._drain()
        else:
            self.close_connection = True
        body = fault.body if isinstance(fault.body, bytes) else json.dumps(fault.body).encode()
        self._send(fault.status, body, fault.headers)
        return True

    def _allowed(self):
        wanted = self.service.key
        if wanted and self.headers.get("Authorization") != f"Bearer {wanted}":
            raise Refusal(401, "expected a key")

    def _routed(self, method):
        path = urlsplit(self.path).path  # as sent: what is quoted stays one segment
        for wanted, pattern, action in ROUTES:
            if wanted == method and (found := re.fullmatch(pattern, path)):
                self.named = {name: unquote(part) for name, part in found.groupdict().items()}
                return action
        raise Refusal(404, f"no route {method} {path}")

    # What it sends

    def _drain(self):
        if not self.read:
            self._body()

    def _body(self):
        assert "Transfer-Encoding" not in self.headers
        length = int(self.headers.get("Content-Length", 0))
        self.read = True
        content = self.rfile.read(length)
        if len(content) < length:
            raise _Cut
        return content

    def _json(self, value, status=200, headers=None):
        self._send(
            status,
            json.dumps(value).encode(),
            {"Content-Type": "application/json", **(headers or {})},
        )

    def _problem(self, problem):
        headers = {"Content-Type": "application/problem+json"}
        self._send(problem["status"], json.dumps(problem).encode(), headers)

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
        if self.method != "HEAD" and status not in (204, 304):
            self.wfile.write(body)

    # Checkpoints and datasets

    def checkpoint_head(self):
        if self.named["digest"] not in self.service.checkpoints:
            raise Refusal(404, "")
        self._send(200, b"", {})

    def checkpoint_put(self):
        content = self._body()
        digest = "sha256:" + hashlib.sha256(content).hexdigest()
        if digest != self.named["digest"]:
            raise Refusal(422, f"the body is {digest}")
        new = digest not in self.service.checkpoints
        self.service.checkpoints[digest] = content
        self._json({"digest": digest}, 201 if new else 200)

    def checkpoint_get(self):
        content = self.service.checkpoints.get(self.named["digest"])
        if content is None:
            raise Refusal(404, "no such checkpoint")
        self._json(
            {
                "digest": self.named["digest"],
                "bytes": len(content),
                "architecture": "merge",
                "config": {"cell": "lstm", "size": 8, "feature_size": 4},
                "parameters": 1234,
                "vocabulary_size": 10,
                "encoder": {"name": "vgg16", "digest": "d"},
                "cached": [{"dataset": "shapes@v1/test", "columns": True, "features": False}],
                "created_at": "2026-01-02T03:04:05Z",
            }
        )

    def dataset_put(self):
        assert self.headers["Content-Type"] == "application/x-tar"
        facts, new = self.service.add_dataset(self.named["name"], self._body())
        self._json(facts, 201 if new else 200)

    def dataset_list(self):
        every = [facts for versions in self.service.datasets.values() for facts, _ in versions]
        self._listed(every)

    def dataset_get(self):
        name, _, version = self.named["name"].partition("@")
        for facts, _ in reversed(self.service.datasets.get(name, [])):
            if version in ("", facts["version"]):
                self._json(facts)
                return
        raise Refusal(404, f"no dataset {self.named['name']}")

    # Evaluations

    def submit(self):
        request = json.loads(self._body())
        key = re.fullmatch(r'"((?:[^"\\]|\\.)*)"', self.headers["Idempotency-Key"])[1]
        with self.service.changed:
            replayed = key in self.service.submissions
            if replayed:
                known, id_ = self.service.submissions[key]
                if known != request:
                    raise Refusal(422, "another request had this Idempotency-Key")
            else:
                id_ = self._started(request)
                self.service.submissions[key] = (request, id_)
        status = 202
        if (seconds := self._prefers()) is not None:
            with self.service.changed:
                over = self.service.changed.wait_for(lambda: self._ended(id_), seconds)
            status = 201 if over else 202
        headers = {"Location": f"/v1/evaluations/{id_}", "Retry-After": "1"}
        if replayed:
            headers["Idempotency-Replayed"] = "true"
        self._json(self.service.evaluations[id_], status, headers)

    def _started(self, request):
        if unknown := set(request) - FIELDS:
            raise Refusal(422, "unknown fields", [(f"/{name}", "unknown") for name in unknown])
        facts, images = self.service.images(request["dataset"])
        if "checkpoint" in request and request["checkpoint"] not in self.service.checkpoints:
            raise Refusal(404, "no such checkpoint", [("/checkpoint", "upload it first")])
        wrong = [
            (f"/captions/{number}/image", f"unknown image {item['image']!r}")
            for number, item in enumerate(request.get("captions", ()))
            if item["image"] not in images
        ]
        if wrong:
            raise Refusal(422, f"{len(wrong)} captions cannot be placed", wrong)
        name, split = facts["name"], request["dataset"].partition("/")[2]
        pinned = {"name": name, "version": facts["version"], "digest": "d", "split": split}
        return self.service.start(
            dataset=pinned,
            checkpoint=request.get("checkpoint"),
            labels=request.get("labels", {}),
            gates=[
                {"gate": text, "verdict": None, "detail": None} for text in request.get("gates", ())
            ],
        )

    def _ended(self, id_):
        ended = self.service.evaluations[id_]["status"] in ("succeeded", "failed", "canceled")
        return ended or self.service.stopping

    def _prefers(self):
        found = re.search(r"wait=(\d+)", self.headers.get("Prefer", ""))
        return int(found[1]) if found else None

    def evaluation_list(self):
        def wanted(one):
            labels = {f"label.{name}": value for name, value in one["labels"].items()}
            facts = {"status": one["status"], **labels}
            paging = ("limit", "cursor", "dataset")
            asked = {k: v for k, v in self.query.items() if k not in paging}
            return asked.items() <= facts.items() and self._is_on(one["dataset"])

        self._listed([one for one in self.service.evaluations.values() if wanted(one)])

    def _is_on(self, pinned):
        whole, _, split = self.query.get("dataset", pinned["name"]).partition("/")
        name, _, version = whole.partition("@")
        asked = (name, version or pinned["version"], split or pinned["split"])
        return asked == (pinned["name"], pinned["version"], pinned["split"])

    def _listed(self, items):
        start = int(base64.b64decode(self.query.get("cursor", "MA==")))
        end = start + int(self.query.get("limit", self.service.page))
        following = base64.b64encode(str(end).encode()).decode() if end < len(items) else None
        self._json({"items": items[start:end], "next": following})

    def _known(self):
        if self.named["id"] not in self.service.evaluations:
            raise Refusal(404, f"no evaluation {self.named['id']}")
        return self.named["id"]

    def _etag(self, id_):
        return f'"{id_}.{self.service.versions[id_]}"'

    def evaluation_get(self):
        id_ = self._known()
        known = self.headers.get("If-None-Match")
        seconds = self._prefers()
        with self.service.changed:
            if known == self._etag(id_) and seconds and self.service.holds:
                self.service.changed.wait_for(
                    lambda: known != self._etag(id_) or self.service.stopping, seconds
                )
            etag = self._etag(id_)
            answer = json.loads(json.dumps(self.service.evaluations[id_]))
        headers = {"ETag": etag, **self.service.answer_headers}
        if known == etag:
            self._send(304, b"", headers)
        else:
            self._json(answer, 200, headers)

    def cancel(self):
        id_ = self._known()
        self._drain()
        if not self._ended(id_):
            self.service.change(id_, status="canceled")
        self._json(self.service.evaluations[id_], 202)

    def pregen(self):
        self._known()
        score = {"value": 12.5, "family": "pregen", "higher_is_better": False}
        self._json({"scores": {"perplexity": {**score, "interval": None, "signature": "s"}}})

    def captions(self):
        id_ = self._known()
        if self.headers.get("Accept") == "text/csv":
            text = "image,caption,cider_d\r\na.jpg,a café,0.5\r\n"
            self._send(200, text.encode(), {"Content-Type": "text/csv; charset=utf-8"})
        elif self.query.get("format") == "coco":
            self._json([{"image_id": 7, "caption": f"of {id_}"}])
        else:
            every = [
                {"image": f"{n}.jpg", "caption": f"number {n}", "scores": {"cider_d": n / 10}}
                for n in range(5)
            ]
            self._listed(every)

    def tokens(self):
        self._known()
        token = {"word": "cat", "logp": -0.5, "rank": 0, "top": "cat", "top_logp": -0.5}
        tops = [{"word": "cat", "logp": -0.5}, {"word": "dog", "logp": -1.5}]
        more = {**token, "logp": None, "tops": tops, "entropy": 1.25}
        captions = [{"text": "cat", "tokens": [token, more]}]
        self._json({"image": self.named["image"], "captions": captions})

    def metrics(self):
        spec = {
            "name": "cider_d",
            "family": "postgen",
            "higher_is_better": True,
            "range": [0, 10],
            "definition": "…",
            "needs": ["captions"],
            "status": "available",
            "reason": None,
        }
        others = ("spice", "meteor", "nneval")
        self._listed([spec, *({**spec, "name": name} for name in others)])

    def stream(self):
        id_ = self._known()
        last = int(self.headers.get("Last-Event-ID", 0))
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        if self.service.retry is not None:
            self.wfile.write(b"retry: %d\n\n" % self.service.retry)
        coming = self._coming(id_, 0 if self.service.replays else last)
        for sent, (number, name, data) in enumerate(coming):
            text = json.dumps(data, ensure_ascii=False)
            lines = f": hello\nid: {number}\nevent: {name}\ndata: {text}\n\n".encode()
            if self.fault and sent == self.fault.cut_events:
                self.wfile.write(lines[:-3])
                raise _Cut
            self.wfile.write(lines)

    def _coming(self, id_, after):
        known = self.service.events[id_]
        for number in itertools.count(after):
            with self.service.changed:
                while len(known) <= number and not self.service.stopping:
                    self.service.changed.wait()
                if self.service.stopping:
                    return
            yield known[number]
            if known[number][1] == "end":
                return


_ID = "/v1/evaluations/(?P<id>[^/]+)"
ROUTES = (
    ("HEAD", "/v1/checkpoints/(?P<digest>[^/]+)", Handler.checkpoint_head),
    ("PUT", "/v1/checkpoints/(?P<digest>[^/]+)", Handler.checkpoint_put),
    ("GET", "/v1/checkpoints/(?P<digest>[^/]+)", Handler.checkpoint_get),
    ("PUT", "/v1/datasets/(?P<name>[^/]+)", Handler.dataset_put),
    ("GET", "/v1/datasets/(?P<name>[^/]+)", Handler.dataset_get),
    ("GET", "/v1/datasets", Handler.dataset_list),
    ("POST", "/v1/evaluations", Handler.submit),
    ("GET", "/v1/evaluations", Handler.evaluation_list),
    ("GET", _ID, Handler.evaluation_get),
    ("POST", f"{_ID}/cancel", Handler.cancel),
    ("GET", f"{_ID}/pregen", Handler.pregen),
    ("GET", f"{_ID}/captions", Handler.captions),
    ("GET", f"{_ID}/tokens/(?P<image>[^/]+)", Handler.tokens),
    ("GET", f"{_ID}/events", Handler.stream),
    ("GET", "/v1/metrics", Handler.metrics),
)
