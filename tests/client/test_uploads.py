import io
import tarfile

import pytest

import prescore
from prescore.files import bodies, models


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


def test_the_template_of_chats_is_sent_with_a_model(tmp_path):
    for name in ("config.json", "tokenizer.json", "model.safetensors", "optimizer.pt"):
        (tmp_path / name).write_text('{"model_type": "llava"}')
    (tmp_path / "chat_template.jinja").write_text("{{ messages }}")
    content = b"".join(models.build_body(tmp_path).chunks())
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert tar.getnames() == [
            *("chat_template.jinja", "config.json", "model.safetensors", "tokenizer.json")
        ]


def test_of_an_adapter_only_its_own_two_files_are_sent(service, client, tmp_path):
    """Beside them a trainer leaves the tokenizer, its own state, and more."""
    sent = {"adapter_config.json": b"{}", "adapter_model.safetensors": bytes(20_000)}
    beside = {"tokenizer.json": bytes(90_000), "optimizer.pt": bytes(90_000), "config.json": b"{}"}
    for name, content in (sent | beside).items():
        (tmp_path / name).write_bytes(content)
    digest = client.upload_checkpoint(tmp_path)
    content = service.checkpoints[digest]
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        found = {name: tar.extractfile(name).read() for name in tar.getnames()}
    assert found == sent
    assert len(content) < sum(map(len, sent.values())) + 4_000
    (tmp_path / "adapter_model.safetensors").unlink()
    with pytest.raises(prescore.InvalidArgument, match=r"expected adapter_model\.safetensors"):
        client.upload_checkpoint(tmp_path)
