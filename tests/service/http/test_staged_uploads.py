"""/v1/uploads/{id}/parts: a client sends a file's parts to the object store, and the service makes
of them what it makes of a PUT.
"""

import asyncio
import os
import time
from contextlib import ExitStack
from dataclasses import replace
from threading import Event

import httpx
import pytest
import sqlalchemy as sa

from helpers import outside
from helpers.fleet import bundle, checkpoint, digest, tus_creation, tus_part, until
from helpers.submissions import client_of_team
from service.contract.askers import Scope
from service.contract.errors import StoreUnavailable, UploadComplete
from service.contract.quotas import Quotas, QuotaTable
from service.engine.tables import uploads
from service.http.tus import completion
from service.retention import upload_deletion
from service.stored import resumable_uploads, staged_uploads
from service.stored.upload_turns import UploadCompletions, UploadTurns

PART = 2000


@pytest.fixture(
    scope="module", params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)]
)
def store(request, s3_server):
    """Arguments of `serve_here` for a store that clients reach, in small parts."""
    url, environment = outside.new_bucket(s3_server)
    with ExitStack() as stack:
        record = None
        if request.param == "postgresql":
            record = stack.enter_context(outside.or_skip(outside.postgres_database()))
        at = stack.enter_context(pytest.MonkeyPatch.context())
        for name, value in environment.items():
            at.setenv(name, value)
        at.setattr(staged_uploads, "PART_BYTES", PART)
        yield {"url": record, "blob_url": url, "public_url": s3_server}


@pytest.fixture(scope="module")
def served(serve_here, tmp_path_factory, store):
    with serve_here(tmp_path_factory.mktemp("a home"), **store) as service:
        yield service


@pytest.fixture
def service(served):
    """What a test has left unfinished is given up at its end, which frees the parts."""
    yield served
    with served.client() as client:
        for each in client.get("/v1/uploads").json()["items"]:
            assert client.delete(f"/v1/uploads/{each['id']}").status_code == 204
    assert not _staged(served)


def _begin(client, data, **told):
    told = told or {"kind": "checkpoint", "digest": digest(data)}
    answer = client.post("/v1/uploads", headers=tus_creation(len(data), **told))
    assert answer.status_code == 201, answer.text
    return answer.headers["Location"]


def _ask(client, place):
    answer = client.post(f"{place}/parts")
    assert answer.status_code == 200, answer.text
    return answer.json()


def _put(data, parts):
    for part in parts:
        content = data[part["offset"] : part["offset"] + part["bytes"]]
        assert httpx.put(part["url"], content=content).status_code == 200


def _send(client, place, data):
    """All that is missing; the last answer."""
    while not (state := _ask(client, place))["complete"]:
        _put(data, state["parts"])
    return state


def _became(client, place):
    def found():
        state = client.get(place).json()
        return state if state["location"] or state["problem"] else None

    return until(found, 20, "what became of an upload")


def _staged(service):
    return list(service.parts.blobs.staging.old(time.time() + 60))


def test_parts_become_what_put_stores(service, client, data):
    place = _begin(client, data)
    first = _ask(client, place)
    assert (first["length"], first["staged"], first["complete"]) == (len(data), 0, False)
    told = [(part["number"], part["offset"], part["bytes"]) for part in first["parts"]]
    cuts = [
        (n + 1, at, min(PART, len(data) - at)) for n, at in enumerate(range(0, len(data), PART))
    ]
    assert told == cuts
    _put(data, reversed(first["parts"]))
    assert _ask(client, place) == {
        "length": len(data),
        "staged": len(data),
        "complete": True,
        "parts": [],
    }
    became = _became(client, place)
    assert became["location"] == f"/v1/checkpoints/{digest(data)}"
    assert (became["offset"], became["staged"]) == (len(data), len(data))
    assert client.get(became["location"]).json()["bytes"] == len(data)
    assert b"".join(service.parts.blobs.stream(digest(data))[1]) == data
    assert not _staged(service)
    assert not service.leftovers()
    assert _ask(client, place)["complete"]  # for who has not heard the answer
    assert client.head(place).headers["Upload-Offset"] == str(len(data))


def test_only_what_is_missing_is_asked_for(client, data):
    """By another client as well, which finds the upload by the file's digest."""
    place = _begin(client, data)
    _put(data, _ask(client, place)["parts"][1:3])
    found = client.get("/v1/uploads", params={"digest": digest(data)}).json()["items"]
    assert [(f"/v1/uploads/{each['id']}", each["staged"]) for each in found] == [(place, 0)]
    again = _ask(client, place)
    assert again["staged"] == 2 * PART
    assert {2, 3}.isdisjoint(part["number"] for part in again["parts"])
    assert client.get(place).json()["staged"] == 2 * PART
    _put(data, again["parts"])
    assert _ask(client, place)["complete"]
    assert _became(client, place)["location"]


def test_no_more_than_sixteen_are_told_at_once(client, data, monkeypatch):
    monkeypatch.setattr(staged_uploads, "PART_BYTES", len(data) // 18)
    place = _begin(client, data)
    first = _ask(client, place)["parts"]
    assert [part["number"] for part in first] == list(range(1, 17))
    _put(data, first)
    assert _ask(client, place)["parts"][0]["number"] == 17
    _send(client, place, data)
    assert _became(client, place)["location"]


def test_two_who_begin_at_once_send_parts_of_one_file(service, client, data, monkeypatch):
    place = _begin(client, data)
    begin = type(service.parts.blobs.staging).begin

    def later(self, name):
        monkeypatch.setattr(type(self), "begin", begin)
        _put(data, _ask(client, place)["parts"][:1])  # somebody else was quicker
        return begin(self, name)

    monkeypatch.setattr(type(service.parts.blobs.staging), "begin", later)
    assert _ask(client, place)["parts"][0]["number"] == 2
    assert len(_staged(service)) == 1


def _problem(client, place, data):
    _send(client, place, data)
    return _became(client, place)["problem"]


def test_what_is_wrong_is_refused_as_put_refuses_it(service, client, data):
    wrong = b"\x10" + bytes(7) + b"not a header of it" + bytes(5000)
    place = _begin(client, wrong)
    assert _problem(client, place, wrong)["code"] == "invalid_checkpoint"
    assert client.post(f"{place}/parts").json()["code"] == "upload_refused"
    other = _begin(client, data, kind="checkpoint", digest=digest(b"other"))
    assert _problem(client, other, data)["code"] == "digest_mismatch"
    assert not _staged(service)
    assert not service.leftovers()


def test_parts_may_follow_what_came_through_the_service(service, client, data):
    place = _begin(client, data)
    assert client.patch(place, content=data[:3000], headers=tus_part(0)).status_code == 204
    _send(client, place, data)
    assert _became(client, place)["location"]
    assert b"".join(service.parts.blobs.stream(digest(data))[1]) == data


@pytest.fixture
def assembled(service, client, data):
    """The place of an upload whose parts are one file in the store, and whose row says nothing."""
    place = _begin(client, data)
    _put(data, _ask(client, place)["parts"])
    upload = resumable_uploads.find_upload(service.records, place.split("/")[-1])
    service.parts.blobs.staging.assemble(upload.id, upload.staging)
    return place


def test_it_goes_on_after_a_crash_between_the_whole_file_and_its_row(client, assembled):
    assert _ask(client, assembled)["complete"]
    assert _became(client, assembled)["location"]


def test_it_goes_on_after_a_crash_between_the_object_and_its_row(service, client, data, assembled):
    """The object's copy on this machine is not written to: it may be in use."""
    blobs = service.parts.blobs
    resumable_uploads.note_complete(service.records, assembled.split("/")[-1])
    blobs.put(data)
    with blobs.path(digest(data)).open("rb") as copy:
        before = os.fstat(copy.fileno()).st_mtime_ns
        assert _became(client, assembled)["location"]
        assert os.fstat(copy.fileno()).st_mtime_ns == before


def test_who_asks_while_another_request_completes_it_is_told_so(service, client, data, monkeypatch):
    """As a client that repeats a request whose answer was lost: the file is stored, and is no more
    where it was sent, before the store is asked for it.
    """
    place = _begin(client, data)
    _put(data, _ask(client, place)["parts"])
    size = type(service.parts.blobs.staging).size

    def later(self, name):
        monkeypatch.setattr(type(self), "size", size)
        assert _ask(client, place)["complete"]
        assert _became(client, place)["location"]
        return size(self, name)

    monkeypatch.setattr(type(service.parts.blobs.staging), "size", later)
    assert _ask(client, place)["complete"]
    assert _became(client, place)["location"]


def test_two_processes_that_store_one_upload_store_it_once(service, client, data):
    """The second one had read the row before the first one was ready."""
    place = _begin(client, data)
    _put(data, _ask(client, place)["parts"])
    before = resumable_uploads.find_upload(service.records, place.split("/")[-1])
    assert _ask(client, place)["complete"]
    assert _became(client, place)["location"]
    other = replace(service.parts, turns=UploadTurns(), endings=UploadCompletions())
    with pytest.raises(UploadComplete):
        asyncio.run(completion._finish(other, before, "somebody", Event()))
    assert _became(client, place)["problem"] is None


def test_a_store_that_falls_silent_loses_nothing(service, client, data, monkeypatch):
    place = _begin(client, data)
    _put(data, _ask(client, place)["parts"])
    blobs = service.parts.blobs

    def silent(*_):
        raise StoreUnavailable("the object store: silent")

    with monkeypatch.context() as at:
        at.setattr(type(blobs.staging), "held", silent)
        assert client.post(f"{place}/parts").status_code == 503
    with monkeypatch.context() as at:
        at.setattr(type(blobs.staging), "stream", silent)
        assert _ask(client, place)["complete"]
        assert client.get(place).json()["location"] is None
        assert client.head(place).headers["Upload-Offset"] == str(len(data))
    assert _became(client, place)["location"]


def test_what_the_store_has_lost_is_begun_anew(service, client, data):
    place = _begin(client, data)
    _put(data, _ask(client, place)["parts"])
    upload = resumable_uploads.find_upload(service.records, place.split("/")[-1])
    service.parts.blobs.staging.forget(upload.id, upload.staging)
    assert client.post(f"{place}/parts").status_code == 404
    assert client.get(place).status_code == 404


def test_an_upload_lives_on_while_parts_come_and_is_deleted_with_them_after_a_day(
    service, client, data
):
    place, kept = _begin(client, data), _begin(client, data)
    for each, seconds in ((place, -1), (kept, 60)):
        _put(data, _ask(client, each)["parts"][:1])
        same = uploads.c.id == each.split("/")[-1]
        with service.records.transaction() as connection:
            connection.execute(
                uploads.update().where(same).values(expires_at=time.time() + seconds)
            )
    _ask(client, kept)
    with service.records.reading() as connection:
        own = sa.select(uploads.c.expires_at).where(same)
        assert connection.execute(own).scalar_one() > time.time() + 3600
    upload_deletion.delete_expired_uploads(service.records, service.parts.blobs)
    assert [f"/v1/uploads/{name}" for name, _ in _staged(service)] == [kept]


def test_parts_without_a_row_are_swept(service, client, data, monkeypatch):
    store = service.parts.blobs.staging
    store.begin("up_nobody")
    place = _begin(client, data)
    _ask(client, place)
    monkeypatch.setattr(upload_deletion, "_ORPHAN_SECONDS", -1)
    assert upload_deletion.delete_orphaned_parts(service.records, service.parts.blobs) == 1
    assert [f"/v1/uploads/{name}" for name, _ in _staged(service)] == [place]


def test_parts_are_sent_by_who_may_and_count_among_the_bytes_of_the_team(
    serve_here, tmp_path, store, data
):
    allowed = QuotaTable(default=Quotas(), teams={"red": Quotas(upload_bytes=len(data) + 100)})
    with (
        serve_here(tmp_path, **store, allowed=allowed) as service,
        client_of_team(service, "red", Scope.SUBMIT) as red,
        client_of_team(service, "blue", Scope.PUBLISH) as publisher,
        client_of_team(service, "blue", Scope.SUBMIT) as other,
    ):
        dataset = _begin(publisher, bundle(5), kind="dataset", name="parted")
        assert other.post(f"{dataset}/parts").status_code == 403  # it may not publish
        place = _begin(red, data)

        def used():
            found = {each["name"]: each["used"] for each in red.get("/v1/me").json()["limits"]}
            return found["upload_bytes"]

        _put(data, _ask(red, place)["parts"][:2])
        assert used() == 0
        _ask(red, place)
        assert used() == 2 * PART
        _send(red, place, data)
        assert used() == len(data)
        _ask(red, place)
        assert used() == len(data)
        more = checkpoint(seed=1)
        refused = red.post(f"{_begin(red, more)}/parts")
        assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
