"""A kind of run from outside: a row of KINDS, its request, its answer, and two functions.

Every route of runs is seen, in process: where one of them does not know the new kind, it knows the
old ones by name.
"""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from helpers.fleet import ROOT, bundle
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


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    """Of an application that is made when the row is there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(kinds.KINDS, KIND.name, KindEntry(KIND, CountingIn, _begin))
        with serve_here(tmp_path_factory.mktemp("home")) as service:
            yield service


@pytest.fixture
def client(service):
    """Not judged by openapi.json, which knows of no such run."""
    with service.client() as client:
        client.event_hooks = {}
        yield client


@pytest.fixture
def post(client, request):
    """Asks for a counting of a dataset of which no other test has had any."""
    name = request.function.__name__[:40]
    tar = bundle(IMAGES, seed=len(request.function.__name__))
    assert client.put(f"/v1/datasets/{name}", content=tar).status_code == 201

    def post(**headers):
        return client.post(PLACE, json={"dataset": f"{name}/test"}, headers=headers)

    return post


def test_it_is_submitted_computed_and_found_again(client, post):
    """By its id and in the list of its kind, and not among evaluations."""
    answer = post(Prefer="wait=10", **{"Idempotency-Key": '"once"'})
    found = answer.json()
    assert (answer.status_code, found["status"], found["read"]) == (201, "succeeded", True)
    assert answer.headers["Location"] == f"{PLACE}/{found['id']}"
    assert found["id"].startswith("cn_")
    assert [task["name"] for task in found["tasks"]] == ["references"]
    assert client.get(answer.headers["Location"]).json() == found
    assert post(**{"Idempotency-Key": '"once"'}).json()["id"] == found["id"]
    again = [post().json() for _ in range(2)]
    assert [task["cached"] for task in again[0]["tasks"]] == [True]
    listing = {"limit": 2, "dataset": found["dataset"]["name"]}
    first = client.get(PLACE, params=listing).json()
    rest = client.get(PLACE, params={**listing, "cursor": first["next"]}).json()
    ids = [item["id"] for item in first["items"] + rest["items"]]
    assert ids == [again[1]["id"], again[0]["id"], found["id"]]
    assert rest["next"] is None
    assert client.get(PLACE, params={"status": "failed"}).json()["items"] == []
    assert client.get("/v1/evaluations").json()["items"] == []


@pytest.mark.long
def test_it_is_polled_by_its_tag_and_canceled(service, client, post):
    """Unchanged it is 304; who waits is told as soon as it has changed."""
    with ThreadPoolExecutor(1) as pool, service.held():
        answer = post()
        place, tag = answer.headers["Location"], answer.headers["ETag"]
        assert (answer.status_code, answer.json()["status"]) == (202, "queued")
        assert client.get(place, headers={"If-None-Match": tag}).status_code == 304
        headers = {"If-None-Match": tag, "Prefer": "wait=20"}
        waiting = pool.submit(client.get, place, headers=headers)
        service.until_awaited(answer.json()["id"])
        canceled = client.post(f"{place}/cancel")
        assert (canceled.status_code, canceled.json()["status"]) == (202, "canceled")
        changed = waiting.result()
    assert changed.status_code == 200
    assert changed.headers["ETag"] != tag
    found = client.get(place).json()
    assert (found["status"], found["read"]) == ("canceled", False)


def test_what_is_no_such_id_or_request_is_refused(client, post):
    identity = post().json()["id"]
    for place, name in (("/v1/evaluations", identity), (PLACE, "cn_absent"), (PLACE, "ev_absent")):
        missing = client.get(f"{place}/{name}")
        assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
    assert "no counting 'ev_absent'" in missing.json()["detail"]
    refused = client.post(PLACE, json={"dataset": "tiny/test", "surprise": 1})
    assert [error["pointer"] for error in refused.json()["errors"]] == ["/surprise"]
    assert client.post(PLACE, json={"dataset": "nowhere/test"}).status_code == 404
    assert client.get(PLACE, params={"label.a": "b"}).status_code == 422  # it has no labels


@pytest.mark.long
def test_it_is_described(service):
    """In words that are made of its noun, until it has some of its own."""
    before = json.loads((ROOT / "openapi" / "openapi.json").read_text("utf-8"))["paths"]
    paths = app.describe_api()["paths"]
    new = {path: set(paths[path]) for path in paths.keys() - before.keys()}
    assert new == {
        PLACE: {"get", "post"},
        f"{PLACE}/{{id}}": {"get", "patch", "delete"},
        f"{PLACE}/{{id}}/cancel": {"post"},
    }
    assert paths[PLACE]["post"]["operationId"] == "submit_counting"
    assert paths[PLACE]["get"]["operationId"] == "list_countings"
