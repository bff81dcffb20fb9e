import contextlib
import hashlib
import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import obstore
import pytest

from helpers import outside
from helpers.fleet import free_port
from helpers.full_disks import no_room
from service.contract.errors import BlobDamaged, BlobMissing, InvalidSetting, StoreUnavailable
from service.engine.blobs import FileBlobs, open_blobs


def _all(blobs):
    return list(blobs.old(time.time() + 60))


def _digest(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def test_what_is_put_is_found_under_its_digest(blobs):
    digest = blobs.put(b"hello")
    assert digest == blobs.put(b"hello") == _digest(b"hello")
    assert blobs.path(digest).read_bytes() == b"hello"
    assert _all(blobs) == [digest]
    assert blobs.has(digest)


def test_a_file_of_many_chunks_is_stored_whole(blobs, tmp_path):
    data = bytes(range(256)) * 80_000  # 20 MB: several parts of an S3 upload
    (tmp_path / "file").write_bytes(data)
    digest = blobs.put_file(tmp_path / "file")
    assert digest == _digest(data)
    assert blobs.path(digest).read_bytes() == data


def test_an_upload_that_is_not_committed_leaves_nothing(blobs, tmp_path):
    with blobs.upload() as upload:
        upload.write(b"half")
    assert not _all(blobs)
    assert not list(tmp_path.glob("*/uploads/*"))


def test_an_upload_goes_on_where_another_process_has_left_it(blobs):
    with contextlib.closing(blobs.resumed("up_a")) as upload:
        upload.begin(0)
        upload.write(b"hello ")
    with contextlib.closing(blobs.resumed("up_a")) as upload:
        upload.begin(6)
        upload.write(b"world")
        assert upload.commit() == _digest(b"hello world")


def test_an_upload_that_finds_no_room_leaves_no_file(blobs, tmp_path):
    with no_room(1000), pytest.raises(OSError, match="too large"):
        blobs.put(bytes(4000))
    assert not list(tmp_path.glob("*/uploads/*"))
    assert not _all(blobs)


@pytest.mark.parametrize("damage", [lambda b: bytes([b[0] ^ 1]) + b[1:], lambda b: b[:-1]])
def test_damage_is_found_on_reading_and_the_object_goes(tmp_path, damage):
    """Trial 17: a flipped byte, a tail cut off."""
    blobs = FileBlobs(tmp_path)
    digest = blobs.put(b"some columns")
    path = blobs.path(digest)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BlobDamaged) as caught:
        blobs.path(digest)
    assert caught.value.digest == digest
    with pytest.raises(BlobMissing):
        blobs.path(digest)


def test_what_one_machine_put_another_one_reads_and_fetches_again_if_its_copy_is_damaged(
    bucket, tmp_path
):
    here, there = (open_blobs(bucket, tmp_path / name) for name in ("here", "there"))
    digest = here.put(b"some columns")
    for _ in range(2):
        copy = there.path(digest)
        assert copy.read_bytes() == b"some columns"
        assert copy.is_relative_to(tmp_path / "there")
        copy.write_bytes(b"nonsense")
    name = digest.removeprefix("sha256:")
    obstore.put(obstore.store.from_url(bucket), f"objects/{name[:2]}/{name[2:]}", b"nonsense")
    with pytest.raises(BlobDamaged):  # in the store itself: the object goes
        there.path(digest)
    assert not there.has(digest)


def test_copies_that_take_too_much_room_go_the_oldest_first(bucket, tmp_path):
    from service.engine.blobs.s3 import S3Blobs

    elsewhere = open_blobs(bucket, tmp_path / "elsewhere")
    digests = [elsewhere.put(bytes([at]) * 1000) for at in range(4)]
    blobs = S3Blobs(bucket, tmp_path / "copies", copies_bytes=2500)
    for age, digest in enumerate(digests[:3]):
        os.utime(blobs.path(digest), (0, 10_000 - age))  # long ago; the first one last
    blobs.path(digests[3])
    kept = {f"sha256:{file.parent.name}{file.name}" for file in tmp_path.glob("copies/objects/*/*")}
    assert kept == {digests[0], digests[1], digests[3]}
    assert blobs.path(digests[2]).read_bytes() == bytes([2]) * 1000


def test_a_store_that_loses_an_upload_is_away(monkeypatch, credentials, tmp_path):
    """Stores do so under load, which cannot be had at will: the library fails as it did then."""

    def lose(*_, **__):
        raise FileNotFoundError("Object at a/b not found: NoSuchUpload\n\nDebug source: …")

    monkeypatch.setattr(obstore, "put", lose)
    with pytest.raises(StoreUnavailable) as caught:
        open_blobs("s3://bucket", tmp_path).put(b"a")
    assert caught.value.detail == "the object store: Object at a/b not found: NoSuchUpload"


@pytest.mark.long
def test_a_store_that_does_not_answer_is_said_in_a_line(monkeypatch, credentials, tmp_path):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_port()}")
    with pytest.raises(StoreUnavailable) as caught:
        open_blobs("s3://bucket", tmp_path).has("sha256:" + "0" * 64)
    assert "\n" not in caught.value.detail
    assert outside.CREDENTIALS["AWS_SECRET_ACCESS_KEY"] not in caught.value.detail


@pytest.mark.long
def test_who_is_hurried_does_not_wait_for_a_silent_store(monkeypatch, credentials, tmp_path):
    """T61: not to ask whether something is there, nor to read it, nor to write."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{silent.getsockname()[1]}")
        blobs = open_blobs("s3://bucket", tmp_path, hurried=True)
        digest = "sha256:" + "0" * 64
        with ThreadPoolExecutor() as pool:
            began = time.monotonic()
            asked = ((blobs.has, digest), (blobs.path, digest), (blobs.put, b"a"))
            for one in [pool.submit(*each) for each in asked]:
                with pytest.raises(StoreUnavailable):
                    one.result()
            assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    ("times", "size", "is_put"), [(3, 6 << 20, True), (4, 6 << 20, False), (1, 9, False)]
)
def test_a_large_object_is_not_given_up_because_a_busy_store_answers_late(
    tmp_path, monkeypatch, credentials, times, size, is_put
):
    """The store that answers late so many times is made up: a real one does so when it likes."""
    blobs = open_blobs("s3://bucket", tmp_path, hurried=True)
    late, put = iter(range(times)), []

    def has(_):
        if next(late, None) is not None:
            raise StoreUnavailable("late")
        return False

    monkeypatch.setattr(blobs, "has", has)
    monkeypatch.setattr(blobs, "_put", lambda path, digest: put.append(digest))
    with contextlib.nullcontext() if is_put else pytest.raises(StoreUnavailable):
        blobs.put(bytes(size))
    assert len(put) == is_put


@pytest.mark.parametrize("url", ["ftp://x/y", "s3:///x", "file://host/x", "nonsense", ""])
def test_other_addresses_are_refused(url, tmp_path):
    with pytest.raises(InvalidSetting, match="PRESCORE_BLOB_URL: expected file:///folder or s3://"):
        open_blobs(url, tmp_path)


def test_a_folder_by_url_is_a_folder(tmp_path):
    blobs = open_blobs(f"file://{tmp_path}/with%20blank", tmp_path / "home")
    assert blobs.path(blobs.put(b"x")).is_relative_to(tmp_path / "with blank")


def test_only_what_nobody_has_put_again_is_old(blobs):
    digest = blobs.put(b"x")
    now = time.time()
    assert list(blobs.old(now - 60)) == []
    assert not blobs.delete_old(digest, now - 60)
    assert blobs.has(digest)
    assert list(blobs.old(now + 60)) == [digest]
    assert blobs.delete_old(digest, now + 60)
    assert not blobs.has(digest)
    assert not blobs.delete_old(digest, now + 60)


@pytest.mark.parametrize("digest", ["", "sha256:..", "sha256:../../etc/passwd", "md5:" + "0" * 64])
def test_what_is_no_digest_is_no_object(blobs, digest):
    with pytest.raises(BlobMissing):
        blobs.path(digest)


def test_leftovers_of_killed_uploads_are_swept(blobs, tmp_path):
    (next(tmp_path.glob("*/uploads")) / "old").write_bytes(b"x")
    assert blobs.sweep_uploads(older_than=time.time() - 60) == 0
    assert blobs.sweep_uploads(older_than=time.time() + 60) == 1


WRITER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from service.engine.blobs import open_blobs
with open_blobs(None, Path(sys.argv[1])).upload() as upload:
    upload.write(b"x")
    print(upload.path, flush=True)
    sys.stdin.read()
"""


@pytest.mark.long
def test_what_a_killed_process_was_writing_is_swept_and_nothing_that_is_being_written(tmp_path):
    blobs = open_blobs(None, tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as writer:
        path = Path(writer.stdout.readline().strip())
        a_while_ago = time.time() - 60
        os.utime(path, (a_while_ago, a_while_ago))
        assert blobs.sweep_uploads(older_than=0) == 0
        writer.kill()
        writer.wait()
    assert blobs.sweep_uploads(older_than=0) == 1
    assert not path.exists()


@pytest.mark.long
def test_a_publisher_that_is_killed_leaves_an_object_whole_or_absent(tmp_path):
    """Trial 14: SIGKILL at many points of publishing 2 MB objects."""
    code = (
        "import sys; from pathlib import Path; from service.engine.blobs import FileBlobs\n"
        "blobs = FileBlobs(Path(sys.argv[1])); print('go', flush=True); n = 0\n"
        "while True: n += 1; blobs.put(n.to_bytes(8, 'big') * 250_000)"
    )
    for attempt in range(6):
        process = subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout.readline() == "go\n"
        time.sleep(0.03 + 0.017 * attempt)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    blobs = FileBlobs(tmp_path)
    found = _all(blobs)
    assert found
    for digest in found:
        assert blobs.path(digest).stat().st_size == 2_000_000
    blobs.sweep_uploads(older_than=time.time() + 1)
    assert not list((tmp_path / "uploads").iterdir())
