import hashlib
import itertools

import pytest

import prescore
from prescore.files import bodies


def _digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def test_a_checkpoint_arrives_raw_with_its_length_under_its_hash(service, client, checkpoint):
    digest = client.upload_checkpoint(checkpoint)
    assert digest == _digest(checkpoint.read_bytes())
    assert service.checkpoints == {digest: checkpoint.read_bytes()}
    _, path, headers = service.seen("PUT")[0]
    assert path == f"/v1/checkpoints/{digest}"
    assert headers["Content-Length"] == str(checkpoint.stat().st_size)
    assert "Transfer-Encoding" not in headers


def test_what_the_service_has_is_not_sent_again(service, client, checkpoint):
    calls = []
    digest = client.upload_checkpoint(checkpoint)
    assert client.upload_checkpoint(str(checkpoint), lambda *call: calls.append(call)) == digest
    assert calls == []
    assert len(service.seen("PUT")) == 1
    assert [method for method, *_ in service.requests] == ["HEAD", "PUT", "HEAD"]


def test_progress_goes_from_nothing_to_all_in_small_steps(service, client, tmp_path):
    path = tmp_path / "big.safetensors"
    path.write_bytes(bytes(5 * bodies.CHUNK_BYTES + 3))
    calls = []
    client.upload_checkpoint(path, lambda *call: calls.append(call))
    done, total = zip(*calls, strict=True)
    assert set(total) == {path.stat().st_size}
    assert done[0] == 0
    assert done[-1] == total[0]
    steps = {after - before for before, after in itertools.pairwise(done)}
    assert steps == {bodies.CHUNK_BYTES, 3}


def test_an_interrupted_upload_starts_again_and_arrives_whole(service, client, tmp_path):
    path = tmp_path / "big.safetensors"
    content = b"0123456789abcde\0" * 400_000
    path.write_bytes(content)
    service.fault("PUT", "/v1/checkpoints", cut_upload=1_000_000)
    service.fault("PUT", "/v1/checkpoints", cut_upload=5_000_000)
    calls = []
    digest = client.upload_checkpoint(path, lambda *call: calls.append(call))
    assert service.checkpoints == {digest: content}
    assert len(service.seen("PUT")) == 3
    assert sum(done == 0 for done, _ in calls) == 3


def test_an_upload_whose_answer_was_lost_is_not_sent_twice(service, client, checkpoint):
    service.fault("PUT", "/v1/checkpoints", lose="answer")
    client.upload_checkpoint(checkpoint)
    assert len(service.seen("PUT")) == 1


def test_a_service_that_is_full_for_a_moment_is_tried_again(service, client, checkpoint):
    service.fault("PUT", "/v1/checkpoints", status=503, drain=False)
    digest = client.upload_checkpoint(checkpoint)
    assert digest in service.checkpoints


def test_a_refusal_in_the_middle_of_an_upload_is_heard(service, client, tmp_path):
    path = tmp_path / "wrong.safetensors"
    path.write_bytes(bytes(30_000_000))
    problem = {"title": "Not a checkpoint", "detail": "header: expected JSON"}
    service.fault("PUT", "/v1/checkpoints", status=422, body=problem, drain=False)
    with pytest.raises(prescore.Refused, match="header: expected JSON"):
        client.upload_checkpoint(path)
    assert len(service.seen("PUT")) == 1


@pytest.mark.parametrize("change", [b"", b"longer than before"])
def test_a_file_that_changes_while_it_is_read_is_told(service, client, tmp_path, change):
    path = tmp_path / "growing.safetensors"
    path.write_bytes(b"short")
    body = bodies.file_body(path)
    path.write_bytes(change)
    with pytest.raises(prescore.InvalidArgument, match="still being written"):
        list(body.chunks())


def test_a_file_that_shrinks_during_its_upload_is_told_and_not_tried_again(
    service, client, tmp_path
):
    path = tmp_path / "shrinking.safetensors"
    path.write_bytes(bytes(3 * bodies.CHUNK_BYTES))

    def shrink(done, total):
        if done == bodies.CHUNK_BYTES:
            path.write_bytes(b"")

    with pytest.raises(prescore.InvalidArgument, match="still being written"):
        client.upload_checkpoint(path, shrink)
    assert len(service.seen("PUT")) <= 1  # the server may not have noted the one that broke off
    assert service.checkpoints == {}


def test_a_file_that_is_not_there_is_told_before_anything_is_sent(service, client, tmp_path):
    places = {"cannot be read": tmp_path / "absent.safetensors", "found a folder": tmp_path}
    for message, path in places.items():
        with pytest.raises(prescore.InvalidArgument, match=message):
            client.upload_checkpoint(path)
    assert service.requests == []


def test_an_empty_file_is_the_services_to_refuse(service, client, tmp_path):
    path = tmp_path / "empty.safetensors"
    path.touch()
    assert client.upload_checkpoint(path) == _digest(b"")
