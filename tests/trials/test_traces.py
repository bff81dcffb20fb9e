"""A trace through the processes of a service, as a collector of OpenTelemetry gets it."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from helpers.fleet import Fleet, bundle, checkpoint, until, until_ended, upload

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
KEY = "a-key-of-the-collector"


class Collector(ThreadingHTTPServer):
    """Takes OTLP over HTTP: spans by the name of the service that sent them."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Receive)
        self.spans = []
        self.keys = set()
        self.url = f"http://127.0.0.1:{self.server_port}"


class _Receive(BaseHTTPRequestHandler):
    def do_POST(self):
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages

        body = self.rfile.read(int(self.headers["content-length"]))
        if self.headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.server.keys.add(self.headers.get("authorization"))
        for of in messages.ExportTraceServiceRequest.FromString(body).resource_spans:
            named = {each.key: each.value.string_value for each in of.resource.attributes}
            for scope in of.scope_spans:
                self.server.spans += [(named["service.name"], span) for span in scope.spans]
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def collector():
    pytest.importorskip("opentelemetry.proto.collector.trace.v1", reason="no extra otel here")
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="no extra otel here")
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.mark.slow  # a fleet of its own; spans: service/http/test_traces.py, workers/runtime
def test_one_trace_leads_from_the_request_through_both_workers(collector, tmp_path):
    sent = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": f"authorization={KEY}",
        "OTEL_BSP_SCHEDULE_DELAY": "200",
    }
    with Fleet(tmp_path / "home", **sent) as fleet:
        fleet.add_dataset("tiny", bundle(4))
        with fleet.client() as client:
            asked = {
                "checkpoint": upload(client, checkpoint(seed=4711)),
                "dataset": "tiny/test",
                "postgen": ["rouge_l"],
                "tokenizer": "none",
            }
            headers = {"traceparent": CALLER}
            answer = client.post("/v1/evaluations", json=asked, headers=headers)
            assert until_ended(client, answer.json()["id"], 60)["status"] == "succeeded"
            wanted = {"prescore-api", "prescore-inference", "prescore-metrics"}
            until(lambda: wanted <= {name for name, _ in _of_trace(collector)}, 20, "all spans")
        told = [_environment(process.pid) for process in fleet.family()]
        assert len(told) > 5
        assert not any(KEY in environment for environment in told)
        assert fleet.stop() < 15
    found = _of_trace(collector)
    (request,) = [span for name, span in found if name == "prescore-api"]
    assert request.name == "POST /v1/evaluations"
    attempts = [span for name, span in found if name != "prescore-api"]
    assert {span.parent_span_id for span in attempts} == {request.span_id}
    assert {"attempt prefix", "attempt rouge_l"} <= {span.name for span in attempts}
    assert all(span.start_time_unix_nano >= request.start_time_unix_nano for span in attempts)
    assert collector.keys == {KEY}
    assert KEY not in fleet.log.read_text()


def _of_trace(collector):
    trace = bytes.fromhex(CALLER[3:35])
    return [(name, span) for name, span in list(collector.spans) if span.trace_id == trace]


def _environment(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:  # it has ended, or is not ours to look at
        return ""
