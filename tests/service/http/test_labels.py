"""The labels that a team's evaluations have, over HTTP."""

import time

import pytest
import sqlalchemy as sa

from helpers.fleet import bundle
from helpers.submissions import serve_datasets
from service.engine.tables import labels, runs

CAPTIONS = [{"image": f"{at}.jpg", "caption": "w1 w2"} for at in range(12)]


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    tar = bundle(12)
    yield from serve_datasets(serve_here, tmp_path_factory, tiny=tar, other=tar)


@pytest.fixture
def client(service):
    with service.client() as client:
        yield client
    with service.records.transaction() as connection:
        for table in (labels, runs):
            connection.execute(table.delete())


def _submitted(client, dataset="tiny/test", **marked):
    asked = {"dataset": dataset, "captions": CAPTIONS, "postgen": ["bleu_1"], "labels": marked}
    return client.post("/v1/evaluations", json=asked).json()


def _of(evaluations, value):
    """What is told of a value that these have, the latest one last."""
    latest = evaluations[-1]["created_at"]
    return {"value": value, "evaluations": len(evaluations), "latest": latest}


def test_names_and_values_are_listed_with_the_latest_first(client):
    one = _submitted(client, branch="main", owner="me")
    two = _submitted(client, branch="dev")
    three = _submitted(client, branch="main")
    other = _submitted(client, "other/test", branch="dev", job="9")
    assert client.get("/v1/labels").json() == {
        "items": [
            {
                "name": "branch",
                "values": [_of([two, other], "dev"), _of([one, three], "main")],
                "more_values": False,
            },
            {"name": "job", "values": [_of([other], "9")], "more_values": False},
            {"name": "owner", "values": [_of([one], "me")], "more_values": False},
        ],
        "more_names": False,
    }
    for dataset in ("tiny", "tiny@v1", "tiny/test", "tiny@v1/test"):
        found = client.get("/v1/labels", params={"dataset": dataset}).json()
        assert [item["name"] for item in found["items"]] == ["branch", "owner"]
        assert found["items"][0]["values"] == [_of([one, three], "main"), _of([two], "dev")]
    for dataset in ("none", "tiny@v2", "tiny/train"):
        found = client.get("/v1/labels", params={"dataset": dataset}).json()
        assert found == {"items": [], "more_names": False}
    refused = client.get("/v1/labels?dataset=/")
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_request")


def _copies(service, client, many, marked):
    """So many evaluations, each a second later than the one before; `marked` gives the labels of
    each by its number.
    """
    first = _submitted(client)["id"]
    with service.records.transaction() as connection:
        row = connection.execute(sa.select(runs).where(runs.c.id == first)).one()._mapping
        made, told = [], []
        for number in range(many):
            own = {"id": f"ev_{number:024}", "created_at": row["created_at"] + 1 + number}
            made.append({**row, **own})
            for name, value in marked(number).items():
                at = own["created_at"]
                told.append({"run_id": own["id"], "name": name, "value": value, "created_at": at})
        connection.execute(runs.insert(), made)
        connection.execute(labels.insert(), told)


@pytest.mark.parametrize("extra", [0, 1])
def test_at_most_100_names_and_100_values_are_listed_and_that_there_are_more_is_told(
    service, client, extra
):
    many = 100 + extra
    _copies(service, client, many, lambda at: {"commit": f"c{at}", f"name{at}": "x"})
    found = client.get("/v1/labels").json()
    (commit,) = (item for item in found["items"] if item["name"] == "commit")
    assert [one["value"] for one in commit["values"]] == [
        f"c{at}" for at in reversed(range(extra, many))
    ]
    assert commit["more_values"] == bool(extra)
    assert found["more_names"] is True
    # `commit` is as late as the latest of the others, and its name is before theirs.
    names = [item["name"] for item in found["items"]]
    assert names == ["commit", *(f"name{at}" for at in reversed(range(many - 99, many)))]


def test_the_latest_5000_evaluations_are_counted_and_soon(service, client):
    old = "of the first one alone"
    _copies(
        service,
        client,
        5001,
        lambda at: {"branch": old if at == 0 else "main", "commit": f"c{at}", "job": f"j{at % 9}"},
    )
    began = time.monotonic()
    found = client.get("/v1/labels").json()["items"]
    print(f"{time.monotonic() - began:.3f} s")
    (branch,) = (item for item in found if item["name"] == "branch")
    assert [(one["value"], one["evaluations"]) for one in branch["values"]] == [("main", 5000)]
    (job,) = (item for item in found if item["name"] == "job")
    assert sum(one["evaluations"] for one in job["values"]) == 5000
