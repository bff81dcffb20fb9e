"""/v1/uploads as tus 1.0 has it: each request, and a client that others wrote (T13)."""

import base64
import io
import itertools

import httpx
import pytest

from helpers.fleet import TUS, checkpoint, digest, tus_creation, tus_part
from service.contract import limits

SEEDS = itertools.count(8000)


@pytest.fixture
def data():
    """A checkpoint that the service does not have."""
    return checkpoint(seed=next(SEEDS))


def _metadata(**told):
    return tus_creation(0, **told)["Upload-Metadata"]


def _creation(data, **more):
    told = {"kind": "checkpoint", "digest": digest(data), "filename": "été.bin"}
    return {**tus_creation(len(data), **told), **more}


@pytest.fixture
def begin(client):
    begun = []

    def begin(data):
        answer = client.post("/v1/uploads", headers=_creation(data))
        assert answer.status_code == 201, answer.text
        assert answer.headers["Tus-Resumable"] == "1.0.0"
        assert answer.headers["Upload-Expires"].endswith("GMT")
        begun.append(answer.headers["Location"])
        return begun[-1]

    yield begin
    for url in begun:
        client.delete(url, headers=TUS)


def _append(client, url, content, offset):
    return client.patch(url, content=content, headers=tus_part(offset))


def test_the_bytes_that_fill_the_length_are_the_last_ones(client, begin, data):
    url = begin(data)
    answer = _append(client, url, data[:1000], 0)
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (204, "1000")
    state = client.head(url, headers=TUS).headers
    told = [state[name] for name in ("Upload-Offset", "Upload-Length", "Cache-Control")]
    assert told == ["1000", str(len(data)), "no-store"]
    assert state["Upload-Metadata"] == _creation(data)["Upload-Metadata"]
    answer = _append(client, url, data[1000:], 1000)
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (204, str(len(data)))
    assert answer.headers["Content-Location"] == f"/v1/checkpoints/{digest(data)}"
    assert client.get(answer.headers["Content-Location"]).json()["bytes"] == len(data)
    assert client.head(url, headers=TUS).headers["Upload-Offset"] == str(len(data))
    again = _append(client, url, b"", len(data))  # by who has not heard the answer
    assert (again.status_code, again.headers["Content-Location"]) == (
        204,
        answer.headers["Content-Location"],
    )


def test_bytes_may_come_with_the_creation(client, begin, data):
    url = begin(data)
    headers = {**tus_part(0), **_creation(data)}
    answer = client.post("/v1/uploads", content=data[:1000], headers=headers)
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (201, "1000")
    assert client.delete(answer.headers["Location"], headers=TUS).status_code == 204
    answer = client.post("/v1/uploads", content=data, headers=headers)
    assert (answer.status_code, answer.headers["Upload-Offset"]) == (201, str(len(data)))
    assert answer.headers["Location"].startswith("/v1/uploads/")
    assert url != answer.headers["Location"]


WRONG_CREATIONS = [
    ({"Upload-Length": None}, 422),
    ({"Upload-Length": "-1"}, 422),
    ({"Upload-Length": str(limits.UPLOAD_BYTES + 1)}, 413),
    ({"Upload-Metadata": None}, 422),
    ({"Upload-Metadata": "kind notbase64!"}, 422),
    ({"Upload-Metadata": "kind " + base64.b64encode(b"\xff").decode()}, 422),
    ({"Upload-Metadata": "kind YQ==,kind YQ=="}, 422),
    ({"Upload-Metadata": _metadata(kind="model", digest=digest(b""))}, 422),
    ({"Upload-Metadata": _metadata(kind="checkpoint")}, 422),
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
    url = begin(data)
    headers = {**tus_part(0), **more}
    given = {name: value for name, value in headers.items() if value is not None}
    answer = client.patch(url, content=data, headers=given)
    assert answer.status_code == status, answer.text
    assert client.head(url, headers=TUS).headers["Upload-Offset"] == "0"


def test_more_than_was_announced_is_refused(client, begin, data):
    url = begin(data)
    assert _append(client, url, data + b"x", 0).status_code == 413
    assert _append(client, url, data, 0).status_code == 204
    assert _append(client, url, b"x", len(data)).status_code == 409


def test_an_empty_file_is_refused_as_what_it_is(client):
    answer = client.post("/v1/uploads", headers=_creation(b""))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_checkpoint")


def test_a_method_may_be_told_by_a_header(service, begin, data):
    url = service.url + begin(data)
    with httpx.Client(headers=tus_part(0)) as client:
        part = {"X-HTTP-Method-Override": "PATCH"}
        assert client.post(url, content=data[:10], headers=part).status_code == 204
        answer = client.post(url, headers={"X-HTTP-Method-Override": "HEAD"})
        assert answer.headers["Upload-Offset"] == "10"
        assert client.post(url, headers={"X-HTTP-Method-Override": "PUT"}).status_code == 405
        assert client.post(url, headers={"X-HTTP-Method-Override": "DELETE"}).status_code == 204
        assert client.head(url).status_code == 404


def test_an_upload_is_looked_at_and_given_up_by_hand_without_a_version(client, begin, data):
    url = begin(data)
    assert client.head(url).headers["Upload-Offset"] == "0"
    assert client.get(url).json()["offset"] == 0
    assert client.get(url, headers={"Tus-Resumable": "0.1"}).status_code == 412
    assert client.delete(url).status_code == 204


def test_options_tell_version_extensions_and_the_largest_size(service):
    """Whatever version is asked with."""
    headers = httpx.options(f"{service.url}/v1/uploads", headers={"Tus-Resumable": "9"}).headers
    assert headers["Tus-Version"] == "1.0.0"
    assert headers["Tus-Max-Size"] == str(limits.UPLOAD_BYTES)
    assert headers["Tus-Resumable"] == "1.0.0"
    extensions = set(headers["Tus-Extension"].split(","))
    assert extensions == {"creation", "creation-with-upload", "termination", "expiration"}


@pytest.fixture
def tuspy(service):
    client = pytest.importorskip("tusclient.client", reason="no tuspy: it is of the extra trials")
    return client.TusClient(f"{service.url}/v1/uploads")


def test_tuspy_sends_a_checkpoint_and_goes_on_after_a_stop(tuspy, client, data):
    told = {"kind": "checkpoint", "digest": digest(data)}
    first = tuspy.uploader(file_stream=io.BytesIO(data), chunk_size=1000, metadata=told)
    first.upload(stop_at=3000)
    again = tuspy.uploader(file_stream=io.BytesIO(data), chunk_size=1000, url=first.url)
    assert again.offset == 3000
    again.upload()
    assert client.get(f"/v1/checkpoints/{digest(data)}").json()["bytes"] == len(data)
