"""When spans are sent, and what that costs when they are not."""

import subprocess
import sys
import time

import pytest
from structlog.testing import capture_logs

from helpers.documents import ROOT
from service.engine.tracing import tracers
from service.engine.tracing.spans import OFF

THERE = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": ""},
        {"OTEL_SERVICE_NAME": "ours", "OTEL_TRACES_EXPORTER": "otlp"},
        {**THERE, "OTEL_SDK_DISABLED": "True"},
        {**THERE, "OTEL_TRACES_EXPORTER": "none"},
    ],
)
def test_nothing_is_sent_unless_a_collector_is_named_and_nothing_says_no(environment):
    with capture_logs() as logged:
        assert tracers.choose_tracer("api", environment) is OFF
    assert logged == []


@pytest.mark.parametrize("name", ["", "TRACES_"])
def test_a_collector_is_named_by_either_variable(name):
    assert tracers.is_tracing_wanted({f"OTEL_EXPORTER_OTLP_{name}ENDPOINT": "http://there"})


def test_what_is_missing_is_told_once_and_nothing_is_sent(monkeypatch):
    monkeypatch.setattr(tracers, "_NEEDED", ("a_package.that_nobody.has",))
    with capture_logs() as logged:
        assert tracers.choose_tracer("api", THERE) is OFF
    assert [line["event"] for line in logged] == ["no traces"]
    assert "pip install" in logged[0]["reason"]


def test_another_protocol_is_told_and_nothing_is_sent():
    with capture_logs() as logged:
        assert tracers.choose_tracer("api", {**THERE, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) is OFF
    assert "http/protobuf" in logged[0]["reason"]


# FastAPI and redis import parts of it where it is installed, for numbers of their own.
PIECES = """
import sys
import service.http.app, workers.runtime.worker, workers.cli.worker, service.operate.janitor
from service.engine.tracing import tracers
from service.engine.tracing.spans import OFF
wanted = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}
assert tracers.choose_tracer("api", {}) is OFF
sys.modules["opentelemetry.sdk"] = sys.modules["opentelemetry.exporter"] = None
assert tracers.choose_tracer("api", wanted) is OFF
assert "service.engine.tracing.span_export" not in sys.modules
assert not any(name.startswith("opentelemetry.exporter.otlp") for name in sys.modules)
"""


@pytest.mark.processes
def test_no_piece_imports_what_sends_spans_unless_it_is_wanted_and_there():
    subprocess.run([sys.executable, "-c", PIECES], cwd=ROOT, check=True)


SILENT = """
import os, socket, time
from service.engine.tracing import tracers
with socket.create_server(("127.0.0.1", 0)) as silent:
    place = f"http://127.0.0.1:{silent.getsockname()[1]}"
    os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = place
    tracer = tracers.choose_tracer("api", os.environ)
    assert tracer.is_on
    with tracer.request("GET", None):
        pass
    began = time.monotonic()
    tracer.close()
    print(time.monotonic() - began)
"""


@pytest.mark.processes
def test_a_collector_that_is_silent_keeps_no_piece_from_ending():
    """A piece has ten seconds to end; OpenTelemetry by itself waits for ten seconds and more."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="no extra otel here")
    command = [sys.executable, "-c", SILENT]
    began = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    ended = time.monotonic() - began
    assert 1.5 < float(done.stdout) < 4
    assert ended < 9, "the process went on after it had closed"
