import hashlib
import os
import signal
import subprocess
import sys
import time

import pytest

from service.contract.blobs import FileBlobs
from service.contract.errors import BlobDamaged, BlobMissing


@pytest.fixture
def blobs(tmp_path):
    return FileBlobs(tmp_path)


def _digest(data):
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def test_what_is_put_is_found_under_its_digest(blobs):
    digest = blobs.put(b"hello")
    assert digest == _digest(b"hello")
    assert blobs.path(digest).read_bytes() == b"hello"
    assert list(blobs.digests()) == [digest]


def test_putting_the_same_again_changes_nothing(blobs):
    assert blobs.put(b"x") == blobs.put(b"x")
    assert len(list(blobs.digests())) == 1


def test_an_upload_that_is_not_committed_leaves_nothing(blobs, tmp_path):
    with blobs.upload() as upload:
        upload.write(b"half")
    assert not list(blobs.digests())
    assert not list((tmp_path / "uploads").iterdir())


@pytest.mark.parametrize("damage", [lambda b: bytes([b[0] ^ 1]) + b[1:], lambda b: b[:-1]])
def test_damage_is_found_on_reading_and_the_object_goes(blobs, damage):
    """Trial 17: a flipped byte, a tail cut off."""
    digest = blobs.put(b"some columns")
    path = blobs.path(digest)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(BlobDamaged):
        blobs.path(digest)
    with pytest.raises(BlobMissing):
        blobs.path(digest)


@pytest.mark.parametrize("digest", ["", "sha256:..", "sha256:../../etc/passwd", "md5:" + "0" * 64])
def test_what_is_no_digest_is_no_object(blobs, digest):
    with pytest.raises(BlobMissing):
        blobs.path(digest)


def test_leftovers_of_killed_uploads_are_swept(blobs, tmp_path):
    (tmp_path / "uploads" / "old").write_bytes(b"x")
    assert blobs.sweep_uploads(older_than=time.time() - 60) == 0
    assert blobs.sweep_uploads(older_than=time.time() + 60) == 1


def test_a_publisher_that_is_killed_leaves_an_object_whole_or_absent(tmp_path):
    """Trial 14: SIGKILL at many points of publishing 2 MB objects."""
    code = (
        "import sys; from pathlib import Path; from service.contract.blobs import FileBlobs\n"
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
    found = list(blobs.digests())
    assert found
    for digest in found:
        assert blobs.path(digest).stat().st_size == 2_000_000
    blobs.sweep_uploads(older_than=time.time() + 1)
    assert not list((tmp_path / "uploads").iterdir())
