"""Files and folders that commands write: a wrong place is refused before anything is read."""

import os
import typing
from inspect import signature, unwrap
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from helpers import command_app

READ = {  # parameters that are paths of what a command reads
    *("bundle", "captions", "captions_file", "checkpoint", "dataset", "file", "files", "folder"),
    *("key_file", "home", "machine"),
    "socket",  # which a converter makes, and says where it cannot
    *("images", "judgements", "logp", "map_file", "model", "preprocessing"),
    *("outputs", "path", "ratings", "source", "tokens", "train", "val", "test", "vocabulary"),
}


def _all(group, *names):
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _all(command, *names, name)
        elif unwrap(command.callback).__module__.startswith(("workers.cli.", "prescore.cli.")):
            yield (*names, name), command


def _paths(command):
    """The names of parameters that are paths."""
    parameters = signature(command.callback).parameters.values()
    return [each.name for each in parameters if _is_path(each.annotation)]


def _is_path(hint):
    if typing.get_origin(hint) is typing.Annotated:
        return _is_path(typing.get_args(hint)[0])
    return hint is Path or Path in typing.get_args(hint)


PRESCORE = command_app.prescore()


def _written():
    """(arguments before the path, name of its parameter) of everything that commands write."""
    for names, command in _all(typer.main.get_command(PRESCORE)):
        arguments = [each.name for each in command.params if each.param_type_name == "argument"]
        options = {each.name: each.opts[0] for each in command.params}
        for path in sorted({*_paths(command)} - READ):
            before = ["absent"] * arguments.index(path) if path in arguments else [options[path]]
            yield pytest.param([*names, *before], path, id=f"{' '.join(names)} {path}")


WRITTEN = list(_written())
CONVERTED = {f"convert {each}" for each in ("flickr8k", "karpathy", "coco", "references")}
FOLDERS = {*CONVERTED, "export --out", "lab shapes", "lab train"}


def _run(arguments):
    done = CliRunner().invoke(PRESCORE, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 2
    assert done.stderr.strip().count("\n") == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize(("arguments", "path"), WRITTEN)
def test_a_place_that_cannot_be_written_is_refused_first(tmp_path, arguments, path):
    (tmp_path / "file").touch()
    if " ".join(arguments[:2]) in FOLDERS and path == "out":
        for wrong in ("file", "file/inner"):
            said = _run([*arguments, tmp_path / wrong])
            assert f"refused: expected a folder to write, found the file {tmp_path}/file" in said
        return
    said = _run([*arguments, tmp_path / "nodir" / "out.csv"])
    assert said == f"expected a folder for out.csv, found none at {tmp_path}/nodir\n"
    assert "expected a file to write, found the folder" in _run([*arguments, tmp_path])
    assert "File name too long" in _run([*arguments, tmp_path / ("long" * 100)])
    if os.geteuid() != 0:  # who may write everywhere
        (tmp_path / "theirs").touch(0o400)
        assert "a file that may be written" in _run([*arguments, tmp_path / "theirs"])


def test_there_are_such_files_in_most_commands():
    found = {one.id.partition(" ")[0] for one in WRITTEN}
    assert found >= {"gate", "scores", "captions", "compare", "list", "leaderboard", "judge"}
    assert len(WRITTEN) >= 25


@pytest.mark.parametrize("command", ["karpathy", "coco"])
def test_a_source_before_the_folder_is_asked_about(tmp_path, command):
    (tmp_path / "a.json").touch()
    said = _run(["convert", command, tmp_path / "a.json", tmp_path / "out"])
    assert "The first is the folder to write: were the two swapped?" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "captions.json", "--dataset", "x/test", "--key-file", "absent"],
        ["verify", "absent", "--logp", "absent"],
        ["verify", "captions.json", "--logp", "."],
        ["judge", "."],
        ["judge", "absent", "--csv", "long" * 100],
        ["score", ".", "--dataset", "absent"],
        ["score", "captions.json", "--dataset", "captions.json/test"],
        ["convert", "coco", "out", ".", "--split", "test"],
        ["convert", "karpathy", "out", "absent"],
        ["convert", "flickr8k", "out", "--tokens", ".", "--test", "absent"],
        ["convert", "checkpoint", "absent", "--vocabulary", "absent"],
        ["lab", "train", "absent", "out"],
        ["assets", "add", "word-vectors", "absent"],
    ],
    ids=" ".join,
)
def test_a_path_that_is_wrong_is_told_in_a_line(tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    (tmp_path / "captions.json").write_text('[{"image": "1.jpg", "caption": "a dog"}]')
    _run(arguments)
