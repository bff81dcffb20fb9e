"""When spans are sent, and what that costs when they are not."""

import json
import subprocess
import sys

import pytest
from structlog.testing import capture_logs

from documents import ROOT
from service.works.tracing import choosing
from service.works.tracing.spans import OFF

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
        assert choosing.tracer("api", environment) is OFF
    assert logged == []


@pytest.mark.parametrize("name", ["", "TRACES_"])
def test_a_collector_is_named_by_either_variable(name):
    assert choosing.is_wanted({f"OTEL_EXPORTER_OTLP_{name}ENDPOINT": "http://there"})


def test_what_is_missing_is_told_once_and_nothing_is_sent(monkeypatch):
    monkeypatch.setattr(choosing, "_NEEDED", ("a_package.that_nobody.has",))
    with capture_logs() as logged:
        assert choosing.tracer("api", THERE) is OFF
    assert [line["event"] for line in logged] == ["no traces"]
    assert "pip install" in logged[0]["reason"]


def test_another_protocol_is_told_and_nothing_is_sent():
    with capture_logs() as logged:
        assert choosing.tracer("api", {**THERE, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}) is OFF
    assert "http/protobuf" in logged[0]["reason"]


PIECES = """
import json, sys
import service.http.app, workers.runtime.worker, workers.cli.worker, service.operate.janitor
from service.works.tracing import choosing
from service.works.tracing.spans import OFF
assert choosing.tracer("api", {"OTEL_SERVICE_NAME": "ours"}) is OFF
print(json.dumps(sorted(name for name in sys.modules if name.startswith("opentelemetry"))))
"""


@pytest.mark.processes
def test_no_piece_imports_it_unless_it_is_wanted():
    command = [sys.executable, "-c", PIECES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
