"""Which requests have a line in the log, at the level of debugging, and what a defect leaves there.

In process: both are rules of the application. tests/trials/test_logs.py has what a process writes.
"""

import json

from fleet import until
from service.engine.tables import datasets


def _about(service, identity):
    """The lines of the log about a request; only the application knows its id."""
    lines = [line for line in service.log.read_text().splitlines() if identity in line]
    return [json.loads(line) for line in lines]


def _told(service, identity):
    return until(lambda: _about(service, identity), 5, "a line about the request")


def test_at_debug_every_request_has_a_line_but_those_of_machines(service):
    with service.client() as client:
        untold = [client.get(path).headers["X-Request-ID"] for path in ("/livez", "/metrics")]
        (line,) = _told(service, client.get("/v1/datasets").headers["X-Request-ID"])
    assert (line["level"], line["status"]) == ("debug", 200)
    assert not any(_about(service, identity) for identity in untold)


def test_a_defect_is_told_under_the_id_of_its_request(service):
    """A row that nobody can read: its traceback is in the log, the answer has the id alone."""
    row = {"name": "odd", "version": 1, "splits": "no JSON", "created_at": 0.0, "bytes": 0}
    row |= dict.fromkeys(("digest", "captions", "content"), "")
    with service.records.transaction() as connection:
        connection.execute(datasets.insert().values(**row))
    with service.client() as client:
        answer = client.get("/v1/datasets/odd")
    identity = answer.headers["X-Request-ID"]
    assert answer.status_code == 500
    assert answer.json()["request_id"] == identity
    assert "JSON" not in answer.text
    lines = until(
        lambda: len(_about(service, identity)) > 1 and _about(service, identity), 5, "two"
    )
    assert {"request", "unexpected"} <= {line["event"] for line in lines}
    assert any("JSONDecodeError" in line.get("exception", "") for line in lines)
