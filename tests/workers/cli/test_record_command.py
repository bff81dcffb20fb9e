"""`prescore record` as a user calls it: files, the folder of parts, Ctrl-C, refusals."""

import json

import pytest

from helpers import command_app, fleet
from prescore.files.captions import read_captions
from service.contract.formats import columns_values
from workers.cli.record import record
from workers.offline import recordings


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    (tmp_path / "data.tar").write_bytes(fleet.bundle(140, seed=3))
    (tmp_path / "model").write_bytes(fleet.checkpoint(seed=11))
    out = ("--out", "m.columns.safetensors")
    return lambda *options: command_app.invoke(record, "model", *out, *options)


def test_columns_and_captions_are_written_and_the_parts_deleted(run, tmp_path):
    result = run("--dataset", "data.tar", "--max-words", 6, "--beam", 2)
    assert result.exit_code == 0, result.output
    written = {"m.columns.safetensors", "m.captions.json"}
    assert {path.name for path in tmp_path.iterdir()} == {"data.tar", "model", *written}
    assert result.stdout == "m.columns.safetensors: 140 images\nm.captions.json: 140 images\n"
    assert len(columns_values.validate_columns(tmp_path / "m.columns.safetensors").images) == 140
    captions = read_captions(tmp_path / "m.captions.json")
    assert max(len(each["caption"].split()) for each in captions) <= 6


def test_columns_may_be_written_alone_and_captions_elsewhere(run, tmp_path):
    assert run("--dataset", "data.tar", "--split", "test", "--no-captions").exit_code == 0
    assert not (tmp_path / "m.captions.json").exists()
    assert run("--dataset", "data.tar/test", "--captions", "c.json").exit_code == 0
    assert len(json.loads((tmp_path / "c.json").read_text())) == 140


def test_after_an_interruption_the_same_command_goes_on(run, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:

        def interrupt(*_):
            raise KeyboardInterrupt

        patch.setitem(recordings._JOBS, "captions", interrupt)
        result = run("--dataset", "data.tar")
    assert result.exit_code == 130
    assert (
        "stopped: 2 parts in m.columns.safetensors.parts; the same command continues"
        in result.stderr
    )
    with monkeypatch.context() as patch:
        patch.delitem(recordings._JOBS, "columns")  # they are not computed again
        result = run("--dataset", "data.tar")
    assert result.exit_code == 0, result.output
    assert not (tmp_path / "m.columns.safetensors.parts").exists()


def test_a_warning_is_a_line_and_no_failure(run, tmp_path):
    (tmp_path / "data.tar").write_bytes(fleet.bundle(3, words=5000))
    result = run("--dataset", "data.tar", "--no-captions")
    assert result.exit_code == 0
    assert "warning: 9 of 9 references hold UNK" in result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--dataset", "flickr8k/test"], "expected a dataset's folder or tar, found nothing at"),
        (["--dataset", "data.tar/val"], "expected a split of data.tar, one of test"),
        (["--dataset", "data.tar", "--no-captions", "--beam", "2"], "without --captions and a"),
        (["--dataset", "data.tar", "--max-words", "2"], "min_words <= max_words"),
        (["--dataset", "data.tar", "--device", "cuda:99"], "PRESCORE_DEVICE=cuda:99"),
        (["--dataset", "data.tar", "--prompt", "a"], "reads no prompt"),
    ],
)
def test_wrong_requests_are_refused_and_leave_nothing(options, said, run, tmp_path):
    result = run(*options)
    assert result.exit_code in (2, 3), result.output
    assert said in result.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"data.tar", "model"}
