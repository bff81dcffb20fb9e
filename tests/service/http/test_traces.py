"""Traces across the queue: a request's span, and those of the attempts that it began."""

import json

import pytest

from fleet import bundle, checkpoint, upload
from service.works.tables import work_rows
from service.works.tracing import contexts
from spans_kept import keeping

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
WORDS = "w2 w3 secretword"
SAID = [{"image": f"{n}.jpg", "caption": WORDS} for n in range(4)]
ASKED = {
    "captions": SAID,
    "dataset": "secretdata/test",
    "postgen": ["bleu_1"],
    "tokenizer": "none",
    "labels": {"secretlabel": "secretvalue"},
}


@pytest.fixture(scope="module")
def traced(serve_here, tmp_path_factory):
    tracer, ended = keeping()
    with serve_here(tmp_path_factory.mktemp("a home"), tracer=tracer) as service:
        with service.client() as client:
            assert client.put("/v1/datasets/secretdata", content=bundle(4)).status_code == 201
        yield service, ended


def _asked(traced, request, **headers):
    """The answer, its request's span, and those of attempts that are its children."""
    service, ended = traced
    before = len(ended())
    with service.client() as client:
        answer = client.send(client.build_request(**request, headers=headers))
    new = ended()[before:]
    (own,) = [span for span in new if span.kind.name == "SERVER"]
    return answer, own, [span for span in new if span is not own]


def test_attempts_of_a_submission_are_children_of_its_request(traced):
    request = {"method": "POST", "url": "/v1/evaluations", "json": ASKED}
    answer, own, attempts = _asked(traced, request, traceparent=CALLER)
    assert answer.status_code == 202
    caller = contexts.read(CALLER)
    assert (own.context.trace_id, own.parent.span_id) == (caller.trace, caller.span)
    assert own.name == "POST /v1/evaluations"
    assert dict(own.attributes) == {
        "http.request.method": "POST",
        "http.route": "/v1/evaluations",
        "http.response.status_code": 202,
        "prescore.request_id": answer.headers["x-request-id"],
    }
    kinds = {span.attributes["prescore.work.kind"] for span in attempts}
    assert {"bleu", "references"} <= kinds
    for span in attempts:
        assert span.parent.span_id == own.context.span_id
        assert span.context.trace_id == caller.trace
        assert span.attributes["prescore.outcome"] == "done"
        assert 0 <= span.attributes["prescore.queue.wait_seconds"] < 60


def test_what_users_wrote_is_in_no_span(traced):
    service, ended = traced
    with service.client() as client:
        client.get("/v1/datasets/secretdata/leaderboard?metric=bleu_1&label=secretlabel:x")
        client.get("/v1/evaluations?dataset=secretdata")
        client.get("/secretpath")
        client.post("/v1/evaluations", json={**ASKED, "postgen": ["secretmetric"]})
    assert len(ended()) > 5
    for span in ended():
        assert "secret" not in span.to_json()


def test_a_work_keeps_the_trace_of_who_asked_first(traced):
    service, _ = traced
    with service.client() as client, service.held():
        identity = upload(client, checkpoint(seed=77))
        asked = {"checkpoint": identity, "dataset": "secretdata/test", "postgen": []}
        client.post("/v1/evaluations", json=asked, headers={"traceparent": CALLER})
        client.post("/v1/evaluations", json=asked)
        with service.records.reading() as connection:
            ready = work_rows.select().where(work_rows.c.status == "ready")
            kept = {row.traceparent for row in connection.execute(ready)}
    (only,) = kept
    assert only.startswith(CALLER[:36])


@pytest.mark.parametrize(
    "headers",
    [
        [("traceparent", "00-" + "f" * 5000)],
        [("traceparent", CALLER), ("traceparent", CALLER)],
        [("traceparent", f"cc-{CALLER[3:]}")],
        [("tracestate", "vendor=secret")],
    ],
)
def test_an_odd_traceparent_is_no_error_and_begins_a_trace_of_its_own(traced, headers):
    service, ended = traced
    before = len(ended())
    with service.client() as client:
        answer = client.send(client.build_request("GET", "/v1/limits", headers=headers))
    assert answer.status_code == 200
    (span,) = ended()[before:]
    assert span.parent is None
    assert "secret" not in span.to_json()


def test_a_caller_that_is_not_sampled_is_not_told_of(traced):
    service, ended = traced
    before = len(ended())
    with service.client() as client:
        unsampled = {"traceparent": f"{CALLER[:-2]}00"}
        assert client.get("/v1/limits", headers=unsampled).status_code == 200
    assert len(ended()) == before


def test_monitors_and_probes_have_no_spans(traced):
    service, ended = traced
    before = len(ended())
    with service.client() as client:
        for path in ("/livez", "/readyz", "/metrics"):
            client.get(path)
    assert len(ended()) == before


def test_an_error_of_ours_is_an_error_and_a_refusal_is_none(traced, monkeypatch):
    service, ended = traced

    def fail(*_, **__):
        raise ZeroDivisionError("a secret text")

    with service.client() as client:
        client.get("/v1/evaluations/ev_none")
        refused = ended()[-1]
        monkeypatch.setattr("service.http.routers.limits.LimitsOut", fail)
        assert client.get("/v1/limits").status_code == 500
    failed = ended()[-1]
    assert (refused.attributes["http.response.status_code"], refused.status.status_code.name) == (
        404,
        "UNSET",
    )
    assert failed.status.status_code.name == "ERROR"
    assert failed.attributes["error.type"] == "ZeroDivisionError"
    assert "secret" not in failed.to_json()


def test_lines_that_are_logged_meanwhile_say_the_trace(traced):
    service, ended = traced
    with service.client() as client:
        identity = client.get("/v1/evaluations/ev_none").headers["x-request-id"]
    lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    (line,) = [line for line in lines if line.get("request_id") == identity]
    assert line["trace_id"] == f"{ended()[-1].context.trace_id:032x}"


def test_where_nothing_is_traced_works_keep_nothing(serve_here, tmp_path):
    with serve_here(tmp_path / "home") as service, service.client() as client:
        client.put("/v1/datasets/secretdata", content=bundle(4))
        client.post("/v1/evaluations", json=ASKED, headers={"traceparent": CALLER})
        with service.records.reading() as connection:
            rows = connection.execute(work_rows.select()).all()
    assert rows
    assert {row.traceparent for row in rows} == {None}
