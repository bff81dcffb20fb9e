"""/v1/uploads as tus 1.0 has it, for uploads that go on after a cut: what each request is answered
in each state of an upload, what is kept of it, and a client that others wrote (T13).
"""

import base64
import errno
import io
import socket
import time

import httpx
import pytest
import sqlalchemy as sa

from helpers import columns_files
from helpers.fleet import TUS, bundle, digest, tus_creation, tus_part, until
from service.contract import limits
from service.engine.blobs import folder
from service.engine.tables import uploads
from service.retention import upload_deletion
from service.stored import resumable_uploads


def _metadata(**told):
    return tus_creation(0, **told)["Upload-Metadata"]


def _creation(data, **more):
    told = {"kind": "checkpoint", "digest": digest(data), "filename": "été.bin"}
    return {**tus_creation(len(data), **told), **more}


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
        headers = tus_creation(len(data), **told) if told else _creation(data)
        answer = client.post("/v1/uploads", headers=headers)
        assert answer.status_code == 201, answer.text
        assert answer.headers["Tus-Resumable"] == "1.0.0"
        assert answer.headers["Upload-Expires"].endswith("GMT")
        begun.append(answer.headers["Location"])
        return TusUpload(client, begun[-1])

    yield begin
    for url in begun:
        client.delete(url)


def _code(answer):
    return answer.status_code, answer.json()["code"]


def test_the_bytes_that_fill_the_length_are_the_last_ones(client, begin, data):
    upload = begin(data)
    answer = upload.append(data[:1000], 0)
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (204, "1000")
    state = client.head(upload.url, headers=TUS).headers
    told = [state[name] for name in ("Upload-Offset", "Upload-Length", "Cache-Control")]
    assert told == ["1000", str(len(data)), "no-store"]
    assert state["Upload-Metadata"] == _creation(data)["Upload-Metadata"]
    answer = upload.append(data[1000:], 1000)
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (204, str(len(data)))
    place = answer.headers["Content-Location"]
    assert place == f"/v1/checkpoints/{digest(data)}"
    assert client.get(place).json()["bytes"] == len(data)
    assert upload.offset == len(data)
    again = upload.append(b"", len(data))  # by who has not heard the answer
    assert (again.status_code, again.headers["Content-Location"]) == (204, place)


@pytest.mark.parametrize("kind", ["checkpoint", "columns"])
def test_the_digest_need_not_be_known_beforehand(client, begin, data, kind):
    content = data if kind == "checkpoint" else columns_files.columns(metadata={"model": "unnamed"})
    upload = begin(content, kind=kind)
    assert upload.append(content[:100], 0).status_code == 204
    place = upload.append(content[100:], 100).headers["Content-Location"]
    assert place == f"/v1/{'checkpoints' if kind == 'checkpoint' else kind}/{digest(content)}"
    assert client.get(place).json()["bytes"] == len(content)
    assert upload.state["digest"] is None


def test_a_wrong_file_without_a_digest_is_refused_for_what_it_is(begin):
    wrong = begin(b"x" * 100, kind="checkpoint").append(b"x" * 100, 0)
    assert _code(wrong) == (422, "invalid_checkpoint")


def test_bytes_may_come_with_the_creation(client, data):
    headers = {**tus_part(0), **_creation(data)}
    answer = client.post("/v1/uploads", content=data[:1000], headers=headers)
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (201, "1000")
    assert client.delete(answer.headers["Location"], headers=TUS).status_code == 204
    again = client.post("/v1/uploads", content=data, headers=headers)
    assert (again.status_code, again.headers["Upload-Offset"]) == (201, str(len(data)))
    assert again.headers["Location"].startswith("/v1/uploads/")
    assert again.headers["Location"] != answer.headers["Location"]


WRONG_CREATIONS = [
    ({"Upload-Length": None}, 422),
    ({"Upload-Length": "-1"}, 422),
    ({"Upload-Length": str(limits.UPLOAD_BYTES + 1)}, 413),
    ({"Upload-Metadata": None}, 422),
    ({"Upload-Metadata": "kind notbase64!"}, 422),
    ({"Upload-Metadata": "kind " + base64.b64encode(b"\xff").decode()}, 422),
    ({"Upload-Metadata": "kind YQ==,kind YQ=="}, 422),
    ({"Upload-Metadata": _metadata(kind="model", digest=digest(b""))}, 422),
    ({"Upload-Metadata": _metadata(kind="checkpoint", digest="sha256:1")}, 422),
    ({"Upload-Metadata": _metadata(kind="checkpoint", digest=digest(b""), name="a")}, 422),
    ({"Upload-Metadata": _metadata(kind="dataset")}, 422),
    ({"Upload-Metadata": _metadata(kind="dataset", name="a.tar")}, 422),
    ({"Upload-Metadata": _metadata(kind="dataset", name="a/b")}, 422),
    ({"Upload-Metadata": _metadata(kind="dataset", name="a", note="x" * 5000)}, 422),
    ({"Tus-Resumable": None}, 412),
    ({"Tus-Resumable": "2.0.0"}, 412),
]


@pytest.mark.parametrize(("more", "status"), WRONG_CREATIONS)
def test_wrong_creations(client, data, more, status):
    given = {name: value for name, value in _creation(data, **more).items() if value is not None}
    answer = client.post("/v1/uploads", headers=given)
    assert answer.status_code == status, answer.text
    assert answer.headers["Tus-Resumable"] == "1.0.0"
    assert (status != 412) or answer.headers["Tus-Version"] == "1.0.0"


WRONG_PARTS = [
    ({"Upload-Offset": "1"}, 409),
    ({"Upload-Offset": None}, 422),
    ({"Upload-Offset": "-1"}, 422),
    ({"Upload-Offset": "\u0661".encode()}, 422),
    ({"Content-Type": "application/octet-stream"}, 415),
    ({"Tus-Resumable": "1.0"}, 412),
    ({"Tus-Resumable": None}, 412),
]


@pytest.mark.parametrize(("more", "status"), WRONG_PARTS)
def test_wrong_parts_change_nothing(client, begin, data, more, status):
    upload = begin(data)
    headers = {**tus_part(0), **more}
    given = {name: value for name, value in headers.items() if value is not None}
    answer = client.patch(upload.url, content=data, headers=given)
    assert answer.status_code == status, answer.text
    assert upload.offset == 0


def test_more_than_was_announced_is_refused(begin, data):
    upload = begin(data)
    assert upload.append(data + b"x", 0).status_code == 413
    assert upload.append(data, 0).status_code == 204
    assert upload.append(b"x", len(data)).status_code == 409


def test_an_empty_file_is_refused_as_what_it_is(client):
    answer = client.post("/v1/uploads", headers=_creation(b""))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_checkpoint")


def test_a_method_may_be_told_by_a_header(service, begin, data):
    url = service.url + begin(data).url
    with httpx.Client(headers=tus_part(0)) as client:
        part = {"X-HTTP-Method-Override": "PATCH"}
        assert client.post(url, content=data[:10], headers=part).status_code == 204
        answer = client.post(url, headers={"X-HTTP-Method-Override": "HEAD"})
        assert answer.headers["Upload-Offset"] == "10"
        assert client.post(url, headers={"X-HTTP-Method-Override": "PUT"}).status_code == 405
        assert client.post(url, headers={"X-HTTP-Method-Override": "DELETE"}).status_code == 204
        assert client.head(url).status_code == 404


def test_tuspy_sends_a_checkpoint_and_goes_on_after_a_stop(service, client, data):
    others = pytest.importorskip("tusclient.client", reason="no tuspy: it is of the extra trials")
    tuspy = others.TusClient(f"{service.url}/v1/uploads")
    told = {"kind": "checkpoint", "digest": digest(data)}
    first = tuspy.uploader(file_stream=io.BytesIO(data), chunk_size=1000, metadata=told)
    first.upload(stop_at=3000)
    again = tuspy.uploader(file_stream=io.BytesIO(data), chunk_size=1000, url=first.url)
    assert again.offset == 3000
    again.upload()
    assert client.get(f"/v1/checkpoints/{digest(data)}").json()["bytes"] == len(data)


def test_a_dataset_arrives_in_chunks_whose_sizes_nobody_told(begin):
    tar = bundle(5, seed=81)
    upload = begin(tar, kind="dataset", name="parts", digest=digest(tar))
    assert upload.append(iter([tar[:700], tar[700:9000]]), 0).status_code == 204
    answer = upload.append(iter([tar[9000:]]), 9000)
    assert answer.headers["Content-Location"] == upload.state["location"] == "/v1/datasets/parts@v1"


def test_bytes_beyond_the_length_end_an_upload(service, begin, data):
    """There is no Content-Length to tell it before they have come."""
    upload = begin(data)
    answer = upload.append(iter([data, b"x"]), 0)
    assert _code(answer) == (413, "too_large")
    assert _code(upload.append(b"", 0)) == (410, "upload_refused")
    assert not service.leftovers()


def test_parts_that_are_too_small_to_be_judged_are_judged_together(begin):
    data = b"\x10" + bytes(7) + b"not a header of it"
    upload = begin(data)
    answers = [upload.append(data[at : at + 1], at) for at in range(24)]
    assert {answer.status_code for answer in answers[:23]} == {204}
    assert _code(answers[-1]) == (422, "invalid_checkpoint")


def test_a_bundle_with_a_wrong_line_is_refused_as_put_refuses_it(client, begin):
    tar = bundle(3, seed=82).replace(b'"references"', b'"reverences"')
    said = client.put("/v1/datasets/wrong", content=tar).json()
    answer = begin(tar, kind="dataset", name="wrong").append(tar, 0)
    assert {**answer.json(), "request_id": ""} == {**said, "request_id": ""}


def test_an_upload_that_is_deleted_is_gone_with_its_bytes_and_not_with_what_it_became(
    service, client, begin, data
):
    upload = begin(data)
    upload.append(data[:1000], 0)
    assert len(service.leftovers()) == 1
    assert client.delete(upload.url).status_code == 204
    assert not service.leftovers()
    for method in ("HEAD", "GET", "DELETE"):
        assert client.request(method, upload.url).status_code == 404
    assert _code(upload.append(data[1000:], 1000)) == (404, "not_found")
    upload = begin(data)
    upload.append(data, 0)
    assert client.delete(upload.url).status_code == 204
    assert client.head(f"/v1/checkpoints/{digest(data)}").status_code == 200


def _stuck(service, upload, data, offset=0):
    """A request whose body has stopped to come; returns its connection."""
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
