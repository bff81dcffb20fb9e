"""Files that are made of objects: made once, made again, and never too many."""

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from unittest.mock import Mock

import pytest

from service.contract.errors import BlobMissing, ServiceUnavailable
from service.engine.blobs import FileBlobs, derived_files, place_of_object
from service.engine.blobs.derived_files import DerivedFiles

PLACE = "ab/cdef.what"


@pytest.fixture
def files(tmp_path):
    names = (tmp_path / f"new{number}" for number in range(100))
    return DerivedFiles(tmp_path / "derived", lambda: next(names), room_bytes=10)


def _done(path):
    path.write_text("made")
    done = Future()
    done.set_result(None)
    return done


def test_a_file_is_made_where_it_is_missing_and_kept(files):
    made = []
    for _ in range(2):
        path = files.get(PLACE, lambda path: made.append(path) or _done(path))
        assert path.read_text() == "made"
    assert len(made) == 1
    path.unlink()
    assert files.get(PLACE, _done).read_text() == "made"


def test_all_who_ask_meanwhile_get_the_same_one(files):
    making, began, asked = Future(), threading.Event(), []

    def make(path):
        asked.append(path)
        path.write_text("once")
        began.set()
        return making

    with ThreadPoolExecutor(8) as pool:
        answers = [pool.submit(files.get, PLACE, make) for _ in range(8)]
        assert began.wait(10)
        making.set_result(None)
        assert {answer.result(10).read_text() for answer in answers} == {"once"}
    assert len(asked) == 1


def test_a_file_that_is_made_between_two_looks_is_not_made_again(files, monkeypatch):
    made = files.get(PLACE, _done)
    looks = Mock(side_effect=FileNotFoundError)  # the first look was before it was made
    with monkeypatch.context() as patch:
        patch.setattr(derived_files.os, "utime", looks)
        assert files.get(PLACE, lambda _: pytest.fail("made again")) == made


def test_who_would_wait_long_is_told_to_come_back_and_it_is_made_all_the_same(files, monkeypatch):
    monkeypatch.setattr(derived_files, "_WAIT_SECONDS", 0.01)
    making = Future()

    def make(path):
        path.write_text("late")
        return making

    with pytest.raises(ServiceUnavailable, match="prepared just now; try again"):
        files.get(PLACE, make)
    making.set_result(None)
    assert files.get(PLACE, make).read_text() == "late"


def test_what_fails_is_tried_again(files, tmp_path):
    def broken(path):
        path.write_text("half")
        failed = Future()
        failed.set_exception(OSError("no room"))
        return failed

    def missing(path):
        raise BlobMissing("sha256:0", "it is gone")

    for make, error in ((broken, OSError), (missing, BlobMissing)):
        with pytest.raises(error):
            files.get(PLACE, make)
    assert not list(tmp_path.glob("new*"))
    assert files.get(PLACE, _done).read_text() == "made"


def test_the_least_recently_used_ones_go(files):
    places = [f"ab/{number}.what" for number in range(4)]
    for number, name in enumerate(places):
        os.utime(files.get(name, _done), (number, number))
    with files.new() as path:
        path.write_text("made")
        kept = files.keep(path, PLACE)
    assert kept.exists()
    left = {file.name for file in kept.parent.iterdir()}
    assert left == {"cdef.what", "3.what"}
    with files.new() as path:
        path.write_text("more than there is room for")
        assert files.keep(path, PLACE).exists()
    assert [file.name for file in kept.parent.iterdir()] == ["cdef.what"]


def test_a_file_goes_with_its_object(tmp_path):
    blobs = FileBlobs(tmp_path)
    digest = blobs.put(b"x")
    made = blobs.derived.get(f"{place_of_object(digest)}.what", _done)
    assert blobs.delete_old(digest, float("inf"))
    assert not made.exists()
