"""Requests in the log of the real service, where its streams and its level are its own."""

import json

from helpers.fleet import until


def _about(fleet, identity):
    """The lines of the log about a request; only the API knows its id."""
    lines = [line for line in fleet.log.read_text().splitlines() if identity in line]
    return [json.loads(line) for line in lines]


def _told(fleet, identity):
    return until(lambda: _about(fleet, identity), 5, "a line about the request")


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
        "status": 422,
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
