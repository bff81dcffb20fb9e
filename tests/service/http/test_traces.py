"""Traces across the queue: a request's span, and those of the attempts that it began."""

import json

import pytest

from helpers.fleet import bundle, checkpoint, until, upload
from helpers.span_recorder import keeping
from service.engine.tables import task_rows
from service.engine.tracing import contexts

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


def _of(ended, answer):
    """The span of a request, which ends after its answer."""

    def own():
        name = answer.headers["x-request-id"]
        return [span for span in ended() if span.attributes.get("prescore.request_id") == name]

    (found,) = until(own, 10, "the request's span")
    return found


def _get(traced, path, headers=()):
    """A request's answer and its span."""
    service, ended = traced
    with service.client() as client:
        answer = client.send(client.build_request("GET", path, headers=headers))
    return answer, _of(ended, answer)


def test_attempts_of_a_submission_are_children_of_its_request(traced):
    service, ended = traced
    with service.client() as client:
        answer = client.post("/v1/evaluations", json=ASKED, headers={"traceparent": CALLER})
    assert answer.status_code == 202
    own = _of(ended, answer)
    attempts = [span for span in ended() if span.kind.name == "CONSUMER"]
    caller = contexts.parse_traceparent(CALLER)
    assert (own.context.trace_id, own.parent.span_id) == (caller.trace, caller.span)
    assert own.name == "POST /v1/evaluations"
    assert dict(own.attributes) == {
        "http.request.method": "POST",
        "http.route": "/v1/evaluations",
        "http.response.status_code": 202,
        "prescore.request_id": answer.headers["x-request-id"],
    }
    kinds = {span.attributes["prescore.task.kind"] for span in attempts}
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
        refused = client.post("/v1/evaluations", json={**ASKED, "postgen": ["secretmetric"]})
    assert _of(ended, refused)
    assert len(ended()) > 5
    for span in ended():
        assert "secret" not in span.to_json()


def test_a_task_keeps_the_trace_of_who_asked_first(traced):
    service, _ = traced
    with service.client() as client, service.held():
        identity = upload(client, checkpoint(seed=77))
        asked = {"checkpoint": identity, "dataset": "secretdata/test", "postgen": []}
        client.post("/v1/evaluations", json=asked, headers={"traceparent": CALLER})
        client.post("/v1/evaluations", json=asked)
        with service.records.reading() as connection:
            ready = task_rows.select().where(task_rows.c.status == "ready")
            kept = {row.traceparent for row in connection.execute(ready)}
    (only,) = kept
    assert only.startswith(CALLER[:36])


@pytest.mark.parametrize(
    "headers",
    [
        [("traceparent", CALLER), ("traceparent", CALLER)],
        [("tracestate", "vendor=secret")],
    ],
)
def test_an_odd_traceparent_is_no_error_and_begins_a_trace_of_its_own(traced, headers):
    answer, span = _get(traced, "/v1/limits", headers)
    assert answer.status_code == 200
    assert span.parent is None
    assert "secret" not in span.to_json()


def test_monitors_and_callers_that_are_not_sampled_have_no_spans(traced):
    service, ended = traced
    with service.client() as client:
        asked = [client.get(path) for path in ("/livez", "/readyz", "/metrics")]
        asked.append(client.get("/v1/limits", headers={"traceparent": f"{CALLER[:-2]}00"}))
    after, _ = _get(traced, "/v1/limits")
    names = {span.attributes.get("prescore.request_id") for span in ended()}
    assert after.headers["x-request-id"] in names
    assert not {answer.headers["x-request-id"] for answer in asked} & names


def test_an_error_of_ours_is_an_error_and_a_refusal_is_none(traced, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("a secret text")

    _, refused = _get(traced, "/v1/evaluations/ev_none")
    monkeypatch.setattr("service.http.routers.health.LimitsOut", fail)
    answer, failed = _get(traced, "/v1/limits")
    assert answer.status_code == 500
    assert (refused.attributes["http.response.status_code"], refused.status.status_code.name) == (
        404,
        "UNSET",
    )
    assert failed.status.status_code.name == "ERROR"
    assert failed.attributes["error.type"] == "ZeroDivisionError"
    assert "secret" not in failed.to_json()


def test_lines_that_are_logged_meanwhile_say_the_trace(traced):
    service, _ = traced
    answer, span = _get(traced, "/v1/evaluations/ev_none")

    def logged():
        lines = [json.loads(line) for line in service.log.read_text().splitlines()]
        identity = answer.headers["x-request-id"]
        return [line for line in lines if line.get("request_id") == identity]

    (line,) = until(logged, 10, "a line about the request")
    assert line["trace_id"] == f"{span.context.trace_id:032x}"


def test_where_nothing_is_traced_tasks_keep_nothing(serve_here, tmp_path):
    with serve_here(tmp_path / "home") as service, service.client() as client:
        client.put("/v1/datasets/secretdata", content=bundle(4))
        client.post("/v1/evaluations", json=ASKED, headers={"traceparent": CALLER})
        with service.records.reading() as connection:
            rows = connection.execute(task_rows.select()).all()
    assert rows
    assert {row.traceparent for row in rows} == {None}
