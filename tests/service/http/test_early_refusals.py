"""Packages of transformers that the service refuses by their first kilobytes."""

import http.client
import json

import pytest

from helpers.contract_files import tar, tar_entry
from helpers.fleet import tus_creation, tus_part
from prescore.files import tars
from service.stored import judge_process, judges

MEGABYTES = 300
SENT = 64 << 10  # bytes
UNKNOWN = {"model_type": "whisper"}


def _package(folder, **files):
    """The bytes of a tar as the client writes it, with weights of 300 MB that occupy no disk."""
    for name, content in files.items():
        (folder / f"{name}.json").write_text(content)
    with (folder / "model.safetensors").open("wb") as weights:
        weights.truncate(MEGABYTES * 1_000_000)
    return tars.build_body({path.name: path for path in folder.iterdir()})


def _beginning(body):
    found = b""
    for chunk in body.chunks():
        found += chunk
        if len(found) >= SENT:
            return found[:SENT]
    raise AssertionError("the body is too small")


@pytest.fixture
def sent(service):
    """Sends the beginning of a body that is announced as a whole; returns status and problem."""
    open_ones = []

    def send(method, path, beginning, size, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20)
        open_ones.append(connection)
        connection.putrequest(method, path)
        for name, value in {"Content-Length": str(size), **headers}.items():
            connection.putheader(name, value)
        connection.endheaders(beginning)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    yield send
    for connection in open_ones:
        connection.close()


@pytest.fixture
def body(tmp_path):
    return _package(tmp_path, config=json.dumps(UNKNOWN), generation_config="{}", tokenizer="{}")


def _check(status, problem):
    assert (status, problem["code"]) == (422, "invalid_checkpoint"), problem
    assert "expected a model_type that is read" in problem["detail"]
    assert "found 'whisper'" in problem["detail"]


def test_a_put_of_an_unknown_model_type_is_refused_by_its_first_kilobytes(sent, body):
    place = f"/v1/checkpoints/sha256:{'0' * 64}"
    _check(*sent("PUT", place, _beginning(body), body.size))


def test_a_resumable_upload_of_one_is_refused_by_its_first_kilobytes(sent, client, body):
    told = {"kind": "checkpoint", "digest": f"sha256:{'1' * 64}"}
    begun = client.post("/v1/uploads", headers=tus_creation(body.size, **told))
    place = begun.headers["Location"]
    _check(*sent("PATCH", place, _beginning(body), body.size, **tus_part(0)))
    assert client.head(place).status_code == 410


@pytest.mark.parametrize(
    "names",
    [
        ("config.json", "generation_config.json"),
        ("config.json", "map.toml", "model.safetensors"),
        ("config.json", "look.onnx", "model.safetensors"),
        ("tokenizer.json", "config.json", "model.safetensors"),  # a map may follow
    ],
)
def test_a_package_that_may_be_another_model_is_read_on(tmp_path, names):
    """Another file that tells of which model a package is counts before config.json."""
    unknown = json.dumps(UNKNOWN).encode()
    data = tar(*(tar_entry(f"model/{name}".encode(), unknown) for name in names))
    path = tmp_path / "package"
    path.write_bytes(data[: len(names) * 1024])  # the tar is cut before its end
    asked = {"question": "checkpoint", "path": str(path), "bytes": 10**9}
    assert judge_process.answer_question(asked) == {"facts": judges.NOT_YET}
