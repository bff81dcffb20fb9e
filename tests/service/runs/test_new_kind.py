"""A kind of run from outside: a row of KINDS, its request, its answer, and two functions.

Every route of runs is seen, in process: where one of them does not know the new kind, it knows the
old ones by name.
"""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from helpers.fleet import bundle
from prescore.models import runs
from prescore.models.identifiers import Timestamp
from prescore.models.runs import DatasetPinned, Oddity, Run
from service.contract.api.request_parts import StrictModel
from service.contract.plan.planning import Plan
from service.contract.plan.tasks import Blob, Task
from service.http import app
from service.runs import kinds
from service.runs.kinds import KindEntry
from service.runs.run_store import NewRun, RunKind
from service.stored import datasets

IMAGES = 3
PLACE = "/v1/countings"


class CountingIn(StrictModel):
    """The captions of a split, to be counted."""

    dataset: str


class CountingOut(Run):
    dataset: DatasetPinned
    tasks: list[runs.RunTask]
    warnings: list[Oddity]
    created_at: Timestamp
    finished_at: Timestamp
    asked: str
    read: bool


def _begin(parts, request):
    pinned = datasets.pin_split(parts.records, request.dataset)
    inputs = {"dataset": Blob(pinned.digest)}
    task = Task("references", inputs, {"split": pinned.split, "tokenizer": "none"})
    kept = {"asked": request.dataset}
    return NewRun(KIND.new_id(), KIND.name, kept, pinned, Plan({"references": task}), [], 60)


def _answer(parts, looked):
    asked = json.loads(looked.row.request)["asked"]
    read = looked.tasks[0]["status"] == "done"
    return CountingOut(**looked.common, asked=asked, read=read)


KIND = RunKind("counting", "cn", "counting", PLACE, CountingOut, _answer)


@pytest.fixture
def service(monkeypatch, serve_here, tmp_path):
    """Of an application that is made when the row is there."""
    monkeypatch.setitem(kinds.KINDS, KIND.name, KindEntry(KIND, CountingIn, _begin))
    with serve_here(tmp_path) as service:
        with service.client() as client:
            assert client.put("/v1/datasets/tiny", content=bundle(IMAGES)).status_code == 201
        yield service


@pytest.fixture
def client(service):
    """Not judged by openapi.json, which knows of no such run."""
    with service.client() as client:
        client.event_hooks = {}
        yield client


def _post(client, **headers):
    return client.post(PLACE, json={"dataset": "tiny/test"}, headers=headers)


def test_it_is_submitted_computed_and_found_again(client):
    answer = _post(client, Prefer="wait=10")
    found = answer.json()
    assert (answer.status_code, found["status"], found["read"]) == (201, "succeeded", True)
    assert answer.headers["Location"] == f"{PLACE}/{found['id']}"
    assert found["id"].startswith("cn_")
    assert [task["name"] for task in found["tasks"]] == ["references"]
    assert client.get(answer.headers["Location"]).json() == found
    again = _post(client).json()
    assert [task["cached"] for task in again["tasks"]] == [True]


@pytest.mark.long
def test_it_is_listed_with_those_of_its_kind_alone(client):
    ids = [_post(client).json()["id"] for _ in range(3)]
    captions = [{"image": f"{at}.jpg", "caption": "w2"} for at in range(IMAGES)]
    request = {"captions": captions, "dataset": "tiny/test", "postgen": ["bleu"]}
    other = client.post("/v1/evaluations", json={**request, "tokenizer": "none"}).json()["id"]
    first = client.get(PLACE, params={"limit": 2, "dataset": "tiny@v1"}).json()
    rest = client.get(PLACE, params={"limit": 2, "cursor": first["next"]}).json()
    assert [item["id"] for item in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next"] is None
    assert client.get(PLACE, params={"status": "failed"}).json()["items"] == []
    assert client.get(PLACE, params={"label.a": "b"}).status_code == 422  # it has no labels
    evaluations = client.get("/v1/evaluations").json()["items"]
    assert [item["id"] for item in evaluations] == [other]


def test_its_ids_are_those_of_nothing_else(client):
    identity = _post(client).json()["id"]
    for place, name in (("/v1/evaluations", identity), (PLACE, "cn_absent"), (PLACE, "ev_absent")):
        missing = client.get(f"{place}/{name}")
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert "no counting 'ev_absent'" in missing.json()["detail"]


@pytest.mark.long
def test_it_is_polled_by_its_tag(service, client):
    """Unchanged it is 304; who waits is told as soon as it has changed."""
    with ThreadPoolExecutor(1) as pool:
        with service.held():
            answer = _post(client)
            place, tag = answer.headers["Location"], answer.headers["ETag"]
            assert (answer.status_code, answer.json()["status"]) == (202, "queued")
            assert client.get(place, headers={"If-None-Match": tag}).status_code == 304
            headers = {"If-None-Match": tag, "Prefer": "wait=20"}
            waiting = pool.submit(client.get, place, headers=headers)
            service.until_awaited(answer.json()["id"])
        changed = waiting.result()
    assert changed.status_code == 200
    assert changed.headers["ETag"] != tag
    last = client.get(place)
    assert last.json()["read"] is True
    assert client.get(place, headers={"If-None-Match": last.headers["ETag"]}).status_code == 304


@pytest.mark.long
def test_it_is_canceled(service, client):
    with service.held():
        place = _post(client).headers["Location"]
        canceled = client.post(f"{place}/cancel")
        assert (canceled.status_code, canceled.json()["status"]) == (202, "canceled")
    found = client.get(place).json()
    assert (found["status"], found["read"]) == ("canceled", False)


def test_one_key_is_one_run(client):
    key = {"Idempotency-Key": '"once"'}
    first, again = _post(client, **key).json(), _post(client, **key).json()
    assert first["id"] == again["id"]
    other = client.post(PLACE, json={"dataset": "tiny@v1/test"}, headers=key)
    assert other.status_code == 422


def test_what_is_no_such_request_is_refused_with_its_place(client):
    refused = client.post(PLACE, json={"dataset": "tiny/test", "surprise": 1})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/surprise"]
    assert client.post(PLACE, json={"dataset": "nowhere/test"}).status_code == 404


@pytest.mark.long
def test_it_is_described(monkeypatch):
    """In words that are made of its noun, until it has some of its own."""
    before = app.describe_api()["paths"].keys()
    monkeypatch.setitem(kinds.KINDS, KIND.name, KindEntry(KIND, CountingIn, _begin))
    paths = app.describe_api()["paths"]
    new = {path: set(paths[path]) for path in paths.keys() - before}
    assert new == {
        PLACE: {"get", "post"},
        f"{PLACE}/{{id}}": {"get", "patch", "delete"},
        f"{PLACE}/{{id}}/cancel": {"post"},
    }
    assert paths[PLACE]["post"]["operationId"] == "submit_counting"
    assert paths[PLACE]["get"]["operationId"] == "list_countings"
