"""A file of another program is told by its content before anything is sent."""

import pickle

import pytest

import prescore
from helpers.columns_files import columns
from prescore.files import bodies

PICKLE = pickle.dumps({"weights": [1.0, 2.0]})


@pytest.fixture
def pt(tmp_path):
    path = tmp_path / "best.safetensors"  # its name says nothing
    path.write_bytes(PICKLE)
    return path


def test_a_watch_says_so_and_sends_nothing(service, quick, pt):
    with prescore.watch("run", dataset="shapes/test", url=service.url, timeout=20) as run:
        run.checkpoint(pt, step=1)
    assert "found a pickle" in run.results()[0].problem
    assert service.requests == []


def test_a_dataset_and_captions_too(service, client, tmp_path, pt):
    with pytest.raises(prescore.InvalidArgument, match=r"a dataset bundle.*found a pickle"):
        client.add_dataset("x", pt)
    (tmp_path / "config.json").touch()
    with pytest.raises(prescore.InvalidArgument, match=r"expected tokenizer\.json and model"):
        client.upload_checkpoint(tmp_path)
    assert service.requests == []


@pytest.mark.parametrize("name", ["train.py", "epoch-08.safetensors"])
def test_a_text_is_not_sent_as_a_checkpoint(service, client, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"Error 503: try again later\n")
    with pytest.raises(prescore.InvalidArgument, match=r"a checkpoint .*found a text file: "):
        client.upload_checkpoint(path)
    assert service.requests == []


@pytest.mark.parametrize("command", ["submit", "gate", "watch"])
def test_columns_in_the_place_of_a_checkpoint_are_told_by_their_option(
    service, prescore, tmp_path, command
):
    path = tmp_path / "model.columns.safetensors"
    path.write_bytes(columns())
    more = ["--gate", "cider_d > 0"] if command == "gate" else []
    result = prescore(command, path, "--dataset", "shapes/test", *more)
    assert result.exit_code == 2
    assert "found columns: submit them by `--columns`" in result.stderr
    assert service.seen("HEAD") == service.seen("PUT", "checkpoints") == service.seen("POST") == []


def test_a_checkpoint_in_the_place_of_columns_is_told_too(service, client, tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(columns(metadata={"prescore_columns": None}))
    with pytest.raises(prescore.InvalidArgument, match="is submitted without `--columns`"):
        client.upload_columns(path)
    assert service.seen("HEAD") == service.seen("PUT", "columns") == []


@pytest.mark.parametrize("header", [b"[" * 90, b"[]", b'{"__metadata__": 3}', b"\xff", b""])
def test_a_header_that_cannot_be_read_is_left_to_the_service(client, tmp_path, header):
    path = tmp_path / "odd.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    bodies.check_checkpoint(path)
    bodies.check_columns(path)
