"""Requests in the log of the real service."""

import json

import pytest

from fleet import Fleet, until
from service.works.tables import datasets


def _about(fleet, identity):
    """The lines of the log about a request; only the API knows its id."""
    lines = [line for line in fleet.log.read_text().splitlines() if identity in line]
    return [json.loads(line) for line in lines]


def _told(fleet, identity):
    return until(lambda: _about(fleet, identity), 5, "a line about the request")


@pytest.fixture(scope="module")
def talkative(tmp_path_factory):
    fleet = Fleet(tmp_path_factory.mktemp("talkative"), PRESCORE_LOG_LEVEL="debug").start()
    yield fleet
    fleet.stop()


def test_a_failed_request_is_in_the_log_under_the_id_that_its_answer_has(fleet, client):
    answer = client.get("/v1/evaluations/ev_none?key=hush", headers={"X-Key": "hushhush"})
    identity = answer.headers["X-Request-ID"]
    assert answer.json()["request_id"] == identity
    (line,) = _told(fleet, identity)
    assert line.pop("milliseconds") < 5000
    line.pop("timestamp"), line.pop("pid")
    assert line == {
        "level": "info",
        "event": "request",
        "role": "api",
        "request_id": identity,
        "method": "GET",
        "path": "/v1/evaluations/ev_none",
        "status": 404,
    }
    assert "hush" not in fleet.log.read_text()


def test_what_goes_well_and_quickly_is_not_worth_a_line(fleet, client):
    quiet = client.get("/v1/datasets").headers["X-Request-ID"]
    _told(fleet, client.get("/v1/nothing").headers["X-Request-ID"])
    assert not _about(fleet, quiet)


def test_a_request_that_takes_long_is_in_the_log(fleet, client):
    body = {"captions": [{"image": "0.jpg", "caption": "w2"}], "dataset": "tiny/test"}
    body |= {"subset": True, "postgen": ["bleu"]}
    found = client.post("/v1/evaluations", json=body, headers={"Prefer": "wait=60"})
    address = f"/v1/evaluations/{found.json()['id']}"
    found = client.get(address)
    headers = {"If-None-Match": found.headers["ETag"], "Prefer": "wait=2"}
    long = client.get(address, headers=headers)
    assert long.status_code == 304
    (line,) = _told(fleet, long.headers["X-Request-ID"])
    assert line["milliseconds"] >= 1000


def test_at_debug_every_request_has_a_line_but_those_of_machines(talkative):
    with talkative.client() as client:
        untold = [client.get(path).headers["X-Request-ID"] for path in ("/livez", "/metrics")]
        (line,) = _told(talkative, client.get("/v1/datasets").headers["X-Request-ID"])
    assert (line["level"], line["status"]) == ("debug", 200)
    assert not any(_about(talkative, identity) for identity in untold)


def test_a_defect_is_told_under_the_id_of_its_request(talkative):
    """A row that nobody can read: its traceback is in the log, the answer has the id alone."""
    row = {"name": "odd", "version": 1, "digest": "", "splits": "no JSON", "created_at": 0.0}
    with talkative.records.transaction() as connection:
        connection.execute(datasets.insert().values(**row))
    with talkative.client() as client:
        answer = client.get("/v1/datasets/odd")
    identity = answer.headers["X-Request-ID"]
    assert answer.status_code == 500
    assert answer.json()["request_id"] == identity
    assert "JSON" not in answer.text
    lines = until(
        lambda: len(_about(talkative, identity)) > 1 and _about(talkative, identity), 5, "two"
    )
    assert {"request", "unexpected"} <= {line["event"] for line in lines}
    assert any("JSONDecodeError" in line.get("exception", "") for line in lines)
    assert all(line["role"] == "api" for line in lines)
