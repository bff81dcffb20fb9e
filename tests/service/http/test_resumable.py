"""Uploads that go on after a cut: what each request is answered in each state of an upload, and
what is kept of it (T13). `test_tus.py` has the header fields of the protocol.
"""

import itertools
import time

import httpx
import pytest
import sqlalchemy as sa

from helpers.fleet import bundle, checkpoint, digest, tus_creation, tus_part, until
from service.contract import limits
from service.engine.tables import uploads
from service.retention import upload_deletion
from service.stored import resumable_uploads

SEEDS = itertools.count(7000)


@pytest.fixture
def data():
    """A checkpoint that the service does not have."""
    return checkpoint(seed=next(SEEDS))


class TusUpload:
    def __init__(self, client, url):
        self.client, self.url = client, url

    def append(self, content, offset):
        return self.client.patch(self.url, content=content, headers=tus_part(offset))

    @property
    def offset(self):
        return int(self.client.head(self.url).headers["Upload-Offset"])

    @property
    def state(self):
        return self.client.get(self.url).json()


@pytest.fixture
def begin(client):
    begun = []

    def begin(data, **told):
        told = told or {"kind": "checkpoint", "digest": digest(data)}
        answer = client.post("/v1/uploads", headers=tus_creation(len(data), **told))
        assert answer.status_code == 201, answer.text
        begun.append(answer.headers["Location"])
        return TusUpload(client, begun[-1])

    yield begin
    for url in begun:
        client.delete(url)


def _code(answer):
    return answer.status_code, answer.json()["code"]


def test_a_dataset_arrives_in_chunks_whose_sizes_nobody_told(begin):
    tar = bundle(5, seed=next(SEEDS))
    upload = begin(tar, kind="dataset", name="parts", digest=digest(tar))
    assert upload.append(iter([tar[:700], tar[700:9000]]), 0).status_code == 204
    answer = upload.append(iter([tar[9000:]]), 9000)
    assert answer.headers["Content-Location"] == upload.state["location"] == "/v1/datasets/parts@v1"


def test_nothing_is_appended_to_what_is_complete(begin, data):
    upload = begin(data)
    assert upload.append(data, 0).status_code == 204
    for content, offset in ((b"more", len(data)), (data, 0), (b"", 0)):
        assert _code(upload.append(content, offset)) == (409, "upload_complete")


def test_bytes_beyond_the_length_end_an_upload(service, begin, data):
    """There is no Content-Length to tell it before they have come."""
    upload = begin(data)
    answer = upload.append(iter([data, b"x"]), 0)
    assert _code(answer) == (413, "too_large")
    assert _code(upload.append(b"", 0)) == (410, "upload_refused")
    assert not service.leftovers()


def test_an_invalid_file_is_refused_at_its_beginning(service, client, begin):
    data = b"\x10" + bytes(7) + b"not a header of it" + bytes(5000)
    upload = begin(data + bytes(10**6))
    answer = upload.append(data, 0)
    assert _code(answer) == (422, "invalid_checkpoint")
    assert client.head(upload.url).status_code == 410
    state = upload.state
    assert (state["problem"]["code"], state["complete"]) == ("invalid_checkpoint", False)
    assert not service.leftovers()


def test_parts_that_are_too_small_to_be_judged_are_judged_together(begin):
    data = b"\x10" + bytes(7) + b"not a header of it"
    upload = begin(data)
    answers = [upload.append(data[at : at + 1], at) for at in range(24)]
    assert {answer.status_code for answer in answers[:23]} == {204}
    assert _code(answers[-1]) == (422, "invalid_checkpoint")


def test_another_digest_is_refused_as_a_whole_upload(service, client, begin, data):
    upload = begin(data, kind="checkpoint", digest=digest(b"other"))
    assert _code(upload.append(data, 0)) == (422, "digest_mismatch")
    assert client.head(f"/v1/checkpoints/{digest(data)}").status_code == 404
    assert not service.leftovers()


def test_a_bundle_with_a_wrong_line_is_refused_as_put_refuses_it(client, begin):
    tar = bundle(3, seed=next(SEEDS)).replace(b'"references"', b'"reverences"')
    said = client.put("/v1/datasets/wrong", content=tar).json()
    answer = begin(tar, kind="dataset", name="wrong").append(tar, 0)
    assert {**answer.json(), "request_id": ""} == {**said, "request_id": ""}


def test_an_upload_that_is_deleted_is_gone_with_its_bytes(service, client, begin, data):
    upload = begin(data)
    upload.append(data[:1000], 0)
    assert len(service.leftovers()) == 1
    assert client.delete(upload.url).status_code == 204
    assert not service.leftovers()
    for method in ("HEAD", "GET", "DELETE"):
        assert client.request(method, upload.url).status_code == 404
    assert _code(upload.append(data[1000:], 1000)) == (404, "not_found")


def test_deleting_an_upload_leaves_what_it_became(client, begin, data):
    upload = begin(data)
    upload.append(data, 0)
    assert client.delete(upload.url).status_code == 204
    assert client.head(f"/v1/checkpoints/{digest(data)}").status_code == 200


def _stuck(service, upload, data, offset=0):
    """A request whose body has stopped to come; returns its connection."""
    import socket

    connection = socket.create_connection(("127.0.0.1", service.port))
    fields = "".join(f"{name}: {value}\r\n" for name, value in tus_part(offset).items())
    head = f"PATCH {upload.url} HTTP/1.1\r\nHost: localhost\r\n{fields}Content-Length: 4000\r\n\r\n"
    connection.sendall(head.encode() + data)
    return connection


@pytest.mark.parametrize("then", ["HEAD", "PATCH", "DELETE"])
def test_a_connection_that_is_stuck_locks_nothing(service, client, begin, data, then):
    """Whoever comes later takes over; what had come stays, and the other is told."""
    upload = begin(data)
    with _stuck(service, upload, data[:3000]) as connection:
        until(lambda: service._running.turns.is_held(upload.url.split("/")[-1]), 5, "a writer")
        began = time.monotonic()
        if then == "DELETE":
            assert client.delete(upload.url).status_code == 204
        elif then == "HEAD":
            assert upload.offset == 3000
        else:
            found = upload.append(b"", 1)
            assert found.headers["Upload-Offset"] == "3000"
        assert time.monotonic() - began < 5
        assert connection.recv(1000).split()[1] in (b"409", b"404")


def test_a_cut_connection_leaves_what_had_come(service, begin, data):
    upload = begin(data)
    path = service._running.blobs.unended(upload.url.split("/")[-1])
    with _stuck(service, upload, data[:3000]):  # its header is judged, and so on the disk
        until(lambda: path.exists() and path.stat().st_size == 3000, 5, "bytes")
    until(lambda: upload.state["offset"] == 3000, 5, "the end of the request")
    assert upload.append(data[3000:], 3000).status_code == 204


def test_the_unfinished_uploads_of_a_file_are_found_by_its_digest(client, begin, data):
    upload = begin(data)
    upload.append(data[:10], 0)
    found = client.get("/v1/uploads", params={"digest": digest(data)}).json()["items"]
    assert [(each["id"], each["offset"], each["active"]) for each in found] == [
        (upload.url.split("/")[-1], 10, False)
    ]
    upload.append(data[10:], 10)
    assert client.get("/v1/uploads", params={"digest": digest(data)}).json()["items"] == []


def test_as_many_as_may_be_are_unfinished(client, begin, data, monkeypatch):
    open_ones = len(client.get("/v1/uploads").json()["items"])
    monkeypatch.setattr(limits, "UNFINISHED", open_ones + 1)
    upload = begin(data)
    told = {"kind": "checkpoint", "digest": digest(data)}
    answer = client.post("/v1/uploads", headers=tus_creation(11, **told))
    assert _code(answer) == (503, "too_many_uploads")
    client.delete(upload.url)
    monkeypatch.setattr(limits, "UNFINISHED_BYTES", 10)
    assert client.post("/v1/uploads", headers=tus_creation(11, **told)).status_code == 503


def test_an_upload_to_which_nothing_comes_for_a_day_is_deleted(service, client, begin, data):
    upload, other = begin(data), begin(data)
    for each in (upload, other):
        each.append(data[:10], 0)
    identity = upload.url.split("/")[-1]
    with service.records.transaction() as connection:
        same = uploads.c.id == identity
        assert connection.execute(sa.select(uploads.c.expires_at).where(same)).scalar_one() == (
            pytest.approx(time.time() + limits.UNFINISHED_SECONDS, abs=60)
        )
        connection.execute(uploads.update().where(same).values(expires_at=time.time() - 1))
    assert client.head(upload.url).status_code == 404
    assert upload_deletion.delete_expired_uploads(service.records, service._running.blobs) == 1
    assert [identity in file.name for file in service.leftovers()].count(True) == 0
    assert other.offset == 10
    client.delete(other.url)


def test_a_file_without_a_row_is_swept_after_an_hour(service, monkeypatch):
    path = service._running.blobs.unended("up_nobody")
    path.write_bytes(b"left")
    assert upload_deletion.delete_expired_uploads(service.records, service._running.blobs) == 0
    monkeypatch.setattr(upload_deletion, "_ORPHAN_SECONDS", -1)
    assert upload_deletion.delete_expired_uploads(service.records, service._running.blobs) == 1
    assert not path.exists()


def test_bytes_that_are_on_no_disk_any_more_are_not_told_to_be_there(service, client, begin, data):
    upload = begin(data)
    upload.append(data[:1000], 0)
    path = service._running.blobs.unended(upload.url.split("/")[-1])
    path.write_bytes(data[:500])
    assert _code(upload.append(data[1000:], 1000)) == (404, "not_found")
    assert client.get(upload.url).status_code == 404


def test_what_stands_behind_the_noted_bytes_is_not_believed(service, begin, data):
    """As after a crash: it was written, and never promised to be kept."""
    upload = begin(data)
    upload.append(data[:1000], 0)
    path = service._running.blobs.unended(upload.url.split("/")[-1])
    with path.open("ab") as stream:
        stream.write(b"what a crash has left" * 1000)
    assert upload.offset == 1000
    assert upload.append(data[1000:], 1000).status_code == 204
    assert [file.read_bytes() for file in service.blob_files(digest(data))] == [data]


def test_storing_goes_on_after_a_crash_between_the_bytes_and_their_row(service, client, data):
    """All bytes were there, the object was stored, and the service ended."""
    blobs, records = service._running.blobs, service.records
    blobs.put(data)
    upload = resumable_uploads.create_upload(
        records, resumable_uploads.UploadPurpose("checkpoint", digest(data), None), len(data), ""
    )
    resumable_uploads.note_received(records, upload, len(data), judged=True)
    resumable_uploads.note_complete(records, upload.id)
    found = client.get(f"/v1/uploads/{upload.id}").json()
    assert found["location"] == f"/v1/checkpoints/{digest(data)}"
    assert client.get(found["location"]).json()["bytes"] == len(data)
    assert not service.leftovers()


def test_a_form_of_another_site_begins_nothing(service, data):
    place = f"{service.url}/v1/uploads"
    assert (
        httpx.post(place, content=b"x", headers={"Content-Type": "text/plain"}).status_code == 412
    )
    foreign = {"Origin": "http://elsewhere.example"}
    told = tus_creation(len(data), kind="checkpoint", digest=digest(data))
    assert httpx.post(place, headers={**told, **foreign}).status_code == 403


def test_a_full_disk_is_told_and_the_upload_goes_on(service, begin, data, monkeypatch):
    """T15, the rule alone: `tests/trials/test_resumed_uploads.py` fills a disk."""
    import errno

    from service.engine.blobs import folder

    upload = begin(data)
    upload.append(data[:1000], 0)
    write, room = folder.os.pwrite, 500

    def full(file, content, offset):
        if offset >= 1000 + room:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, content[:room], offset)

    with monkeypatch.context() as patched:
        patched.setattr(folder.os, "pwrite", full)
        assert _code(upload.append(data[1000:], 1000)) == (507, "disk_full")
    assert upload.offset == 1500
    answer = upload.append(data[1500:], 1500)
    assert answer.status_code == 204, answer.text


def test_what_is_told_was_synchronised_before(service, begin, data, monkeypatch):
    """T12: at each synchronisation it is noted how much the file holds; no offset is beyond."""
    from service.engine.blobs import folder

    durable, told = [0], []
    sync = folder.os.fsync

    def synced(file):
        size = folder.os.fstat(file).st_size
        sync(file)
        durable.append(size)

    noted = resumable_uploads.note_received

    def checked(records, upload, received, *, judged):
        told.append((received, max(durable)))
        return noted(records, upload, received, judged=judged)

    monkeypatch.setattr(folder.os, "fsync", synced)
    monkeypatch.setattr(resumable_uploads, "note_received", checked)
    upload = begin(data)
    for at in range(0, len(data), 1000):
        upload.append(data[at : at + 1000], at)
    assert upload.offset == len(data)
    assert len(told) == len(range(0, len(data), 1000))
    assert all(received <= safe for received, safe in told)
