"""Files of attempts: second names of inputs, and results that are files of their own."""

import os
import socket
from pathlib import Path

import pytest

from service.engine.blobs import open_blobs
from workers.runtime import attempt_files
from workers.runtime.attempt_files import AttemptFiles, ResultRefused


@pytest.fixture
def files(tmp_path):
    return AttemptFiles(open_blobs(None, tmp_path), tmp_path / "attempts")


def test_an_input_has_a_second_name_as_long_as_the_attempt(files):
    digest = files._blobs.put(b"words")
    with files.folder() as folder:
        found = files.fetch([digest, digest])
        (path,) = files.inputs.iterdir()
        assert found == {digest: str(path)}
        assert path.samefile(files._blobs.path(digest))
        (folder / "rest").mkdir()
        (folder.parent / "other").write_text("left")
    assert list(files.inputs.iterdir()) == list(files.work.iterdir()) == []
    assert files._blobs.path(digest).read_bytes() == b"words"


def test_an_input_that_is_there_already_is_left(files):
    digest = files._blobs.put(b"words")
    assert files.fetch([digest]) == files.fetch([digest])


def test_folders_of_dead_workers_go_also_of_one_that_had_this_id(tmp_path):
    """In a container each worker has the same id."""
    folder = tmp_path / "attempts"
    host = socket.gethostname()
    names = {f"{host}-{os.getpid()}-a", f"{host}-{2**22 + 1}-b", f"{host}-1-c", "elsewhere-1-d"}
    for name in names:
        (folder / name / "inputs").mkdir(parents=True)
    attempt_files.sweep_attempts(folder)
    assert {each.name for each in folder.iterdir()} == {f"{host}-1-c", "elsewhere-1-d"}


def test_it_is_a_copy_where_no_second_name_can_be(files, monkeypatch):
    digest = files._blobs.put(b"words")

    def refuse(*_):
        raise OSError(18, "another file system")

    monkeypatch.setattr(attempt_files.Path, "hardlink_to", refuse)
    with files.folder():
        path = Path(files.fetch([digest])[digest])
        assert path.read_bytes() == b"words"
        assert path.stat().st_nlink == 1


def test_a_result_that_is_a_link_or_none_is_refused(files, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("secret")
    with files.folder() as folder:
        (folder / "link").symlink_to(secret)
        (folder / "name").hardlink_to(secret)
        os.mkfifo(folder / "pipe")
        (folder / "folder").mkdir()
        for name in ("link", "name", "pipe", "folder", "nothing"):
            with pytest.raises(ResultRefused, match=r"expected a (plain )?file"):
                files.store(folder / name)
        (folder / "result").write_text("words")
        assert files._blobs.path(files.store(folder / "result")).read_text() == "words"


def test_the_folder_goes_with_its_runner(files, tmp_path):
    own = files.inputs.parent
    assert own.is_dir()
    files.__init__(open_blobs(None, tmp_path), tmp_path / "attempts")
    assert files.inputs.parent != own
