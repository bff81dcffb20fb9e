"""A file of another program is told by its content before anything is sent."""

import json
import pickle

import pytest
from typer.testing import CliRunner

import prescore
from helpers import command_app
from helpers.columns_files import columns
from prescore.files import bodies

PICKLE = pickle.dumps({"weights": [1.0, 2.0]})


@pytest.fixture
def pt(tmp_path):
    path = tmp_path / "best.safetensors"  # its name says nothing
    path.write_bytes(PICKLE)
    return path


@pytest.mark.parametrize(
    "arguments", [("submit",), ("gate", "--gate", "cider_d > 0")], ids=["submit", "gate"]
)
def test_a_command_sends_nothing_of_it(service, quick, monkeypatch, pt, arguments):
    monkeypatch.setenv("PRESCORE_URL", service.url)
    name, *options = arguments
    command = [name, str(pt), "--dataset", "shapes/test", *options]
    result = CliRunner().invoke(command_app.prescore(), command)
    assert result.exit_code == 2
    assert "found a pickle: Prescore opens no pickle" in result.stderr
    assert service.requests == []


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
    service, quick, shapes, monkeypatch, tmp_path, command
):
    monkeypatch.setenv("PRESCORE_URL", service.url)
    path = tmp_path / "model.columns.safetensors"
    path.write_bytes(columns())
    more = ["--gate", "cider_d > 0"] if command == "gate" else []
    given = [command, str(path), "--dataset", "shapes/test", *more]
    result = CliRunner().invoke(command_app.prescore(), given)
    assert result.exit_code == 2
    assert "found columns: submit them by `--columns`" in result.stderr
    assert service.seen("HEAD") == service.seen("PUT", "checkpoints") == service.seen("POST") == []


def test_a_checkpoint_in_the_place_of_columns_is_told_too(service, client, shapes, tmp_path):
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


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_captions_in_a_table_are_read_still(service, client, shapes, tmp_path, suffix):
    path = tmp_path / f"results{suffix}"
    path.write_text("image,caption\na.jpg,a square\n".replace(",", ",\t"[suffix == ".tsv"]))
    client.submit("shapes/test", captions=path)
    assert service.seen("POST", "evaluations")


def test_captions_are_known_under_any_name(service, shapes, monkeypatch, tmp_path):
    monkeypatch.setenv("PRESCORE_URL", service.url)
    path = tmp_path / "results.txt"
    path.write_text(json.dumps([{"image": "a.jpg", "caption": "a square"}]))
    result = CliRunner().invoke(
        command_app.prescore(), ["submit", str(path), "--dataset", "shapes/test"]
    )
    assert result.exit_code == 0, result.output
    assert service.seen("PUT", "checkpoints") == []
