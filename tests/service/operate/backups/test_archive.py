"""T67: the file of a backup: whatever happens to it, it is noticed before anything is restored."""

import hashlib
import io
import json
import random
import re
import tarfile

import pytest

from helpers.backup_files import remade
from service.contract.errors import InvalidBackup
from service.contract.settings import Settings
from service.operate.backups import archive, creation, restoration
from service.operate.backups.archive import BackupHead, BackupWriter

ROWS = [["a", 1], ["b", None], ["c", 0.1], ["d", True]]


HEAD = {"prescore_backup": 1, "version": "0.1.0", "revision": "0017", "made_at": 1.0}


def _begun(stream, **head):
    writer = BackupWriter(stream)
    writer.head(BackupHead(**HEAD | head))
    return writer


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A backup with two objects, of no record: of its form alone."""
    path = tmp_path_factory.mktemp("small") / "small.tar"
    with path.open("wb") as stream:
        writer = _begun(stream)
        writer.rows("t", ["name", "value"], [json.dumps(row) for row in ROWS])
        for data in (b"one", b"two" * 1000):
            digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
            assert writer.object(digest, len(data), [data[:2], data[2:]])
        writer.close([])
    return path


def test_what_is_written_is_read(small):
    head, manifest, digests = archive.check_archive(small)
    assert (head.version, manifest.rows, manifest.objects) == ("0.1.0", {"t": 4}, 2)
    assert len(digests) == 2
    rows = next(each for each in archive.read_backup(small) if isinstance(each, archive.BackupRows))
    assert (rows.columns, rows.rows) == (["name", "value"], ROWS)
    with tarfile.open(small) as tar:  # another program reads it too
        names = [re.split("[-./]", name)[0] for name in tar.getnames()]
    assert names == ["head", "record", "objects", "objects", "manifest"]


def _end(data):
    """Where the manifest's content ends: what follows are the zeros that end a tar."""
    return len(data.rstrip(b"\0"))


def test_a_cut_anywhere_is_noticed(small, tmp_path):
    data = small.read_bytes()
    places = {*range(0, _end(data), 97), _end(data) - 1, 0, 1, 511, 512, 513}
    for place in sorted(places):
        with pytest.raises(InvalidBackup):
            archive.check_archive(remade(tmp_path / "cut.tar", data[:place]))


def test_another_byte_anywhere_is_noticed_or_changes_nothing(small, tmp_path):
    """Bytes of a tar that no content depends on may change: its padding, times, names of users."""
    data = bytearray(small.read_bytes())
    rng = random.Random(7)
    noticed = 0
    whole = _shown(small)
    for _ in range(200):
        place = rng.randrange(_end(data))
        before, data[place] = data[place], data[place] ^ (1 << rng.randrange(8))
        file = remade(tmp_path / "other.tar", bytes(data))
        data[place] = before
        try:
            archive.check_archive(file)
        except InvalidBackup:
            noticed += 1
        else:
            assert _shown(file) == whole
    assert noticed > 100


def _shown(path):
    found = []
    for each in archive.read_backup(path):
        if isinstance(each, archive.BackupObject):
            found.append((each.digest, b"".join(each.content)))
        elif not isinstance(each, archive.BackupHead):
            found.append(each)
    return found


@pytest.mark.parametrize("left_out", ["record", "objects"])
def test_a_member_that_is_missing_is_noticed(small, tmp_path, left_out):
    """As if somebody had made a tar of what was unpacked."""
    buffer = io.BytesIO()
    with tarfile.open(small) as tar, tarfile.open(fileobj=buffer, mode="w") as copy:
        gone = next(name for name in tar.getnames() if name.startswith(left_out))
        for member in tar:
            if member.name != gone:
                copy.addfile(member, tar.extractfile(member))
    with pytest.raises(InvalidBackup, match="manifest"):
        archive.check_archive(remade(tmp_path / "other.tar", buffer.getvalue()))


def test_a_later_format_is_refused_with_the_version_that_made_it(tmp_path):
    with (tmp_path / "later.tar").open("wb") as stream:
        _begun(stream, prescore_backup=2, version="7.0").close([])
    with pytest.raises(InvalidBackup, match=r"made by Prescore 7\.0, in format 2"):
        archive.check_archive(tmp_path / "later.tar")


def test_nothing_is_written_of_a_damaged_backup(small, tmp_path):
    remade(tmp_path / "cut.tar", small.read_bytes()[:-12_000])
    with pytest.raises(InvalidBackup):
        restoration.restore_backup(
            tmp_path / "cut.tar", Settings(home=tmp_path / "home"), creation.report_nothing
        )
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("size", "chunks"), [(5, [b"abc"]), (5, [b"abcdefg"]), (5, [b"abcde", b"f"]), (0, [b"a"])]
)
def test_an_object_that_shrinks_or_grows_while_it_is_read_is_noted_as_damaged(
    tmp_path, size, chunks
):
    digest = f"sha256:{'0' * 64}"
    with (tmp_path / "b.tar").open("wb") as stream:
        writer = _begun(stream)
        assert not writer.object(digest, size, chunks)
        assert writer.close([]).damaged == [digest]
    assert archive.check_archive(tmp_path / "b.tar")[2] == set()
