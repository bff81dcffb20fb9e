"""Reads a backup's file in one go, and checks it. Its form is told in `archive`."""

import gzip
import hashlib
import io
import json
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pydantic import ValidationError

from service.contract.errors import InvalidBackup
from service.operate.backups.archive import FORMAT, HEAD, Head, Manifest, Object, Rows, raw

_CHUNK = 1 << 20
_LONGEST_TEXT = 64 << 20  # of a part of the record or the manifest, unpacked
_PART = re.compile(r"record/([a-z0-9_]{1,63})/[0-9]{5,9}\.jsonl\.gz")
_OBJECT = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{62})")
_MANIFEST = re.compile(r"manifest-([0-9a-f]{64})\.json")


def read(path: Path) -> Iterator[Head | Rows | Object | Manifest]:
    """All that a backup holds, in its order: first its head, at the end its manifest.

    Parts of the record and the manifest are checked by their own checksums; an object's content is
    for the caller to check. InvalidBackup: no backup, one that was cut off, or a damaged one.
    """
    found: Head | Rows | Object | Manifest | None = None
    sums: dict[str, str] = {}
    with _translated(path), _opened(path) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if isinstance(found, Manifest) or content is None:
                raise InvalidBackup(f"{path}: damaged: {member.name!r:.100} is not expected")
            found = _read(path, member, content, sums, is_first=found is None)
            yield found
    if found is None:
        raise _no_backup(path)
    if not isinstance(found, Manifest):
        raise InvalidBackup(
            f"{path}: cut off: its end is missing. Use another backup; the file that "
            "`prescore backup` makes has its name only when it is whole"
        )


def _opened(path: Path) -> tarfile.TarFile:
    try:
        return tarfile.open(path, mode="r|", bufsize=_CHUNK)
    except tarfile.TarError:
        raise _no_backup(path) from None


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile, ValueError) as error:
        raise InvalidBackup(f"{path}: cut off or damaged ({str(error)[:200]})") from None
    except OSError as error:
        raise InvalidBackup(f"{path}: cannot be read ({error.strerror or error})") from None


def _chunks(path: Path, content: IO[bytes]) -> Iterator[bytes]:
    with _translated(path):
        while chunk := content.read(_CHUNK):
            yield chunk


def _read(
    path: Path, member: tarfile.TarInfo, content: IO[bytes], sums: dict[str, str], *, is_first: bool
) -> Head | Rows | Object | Manifest:
    if is_first != (member.name == HEAD):
        raise _no_backup(path) if is_first else InvalidBackup(f"{path}: damaged: two heads")
    if is_first:
        return _head(path, _bounded(path, member, content))
    if of := _OBJECT.fullmatch(member.name):
        return Object(f"sha256:{of[1]}{of[2]}", _chunks(path, content))
    if of := _PART.fullmatch(member.name):
        data = _bounded(path, member, content)
        sums[member.name] = hashlib.sha256(data).hexdigest()
        return _rows(path, of[1], data)
    if of := _MANIFEST.fullmatch(member.name):
        data = _bounded(path, member, content)
        if hashlib.sha256(data).hexdigest() == of[1]:
            manifest = Manifest.model_validate_json(data)
            if manifest.parts == sums:
                return manifest
        raise InvalidBackup(f"{path}: damaged: what it holds is not what its manifest says")
    raise InvalidBackup(f"{path}: damaged: {member.name!r:.100} is not expected")


def _head(path: Path, data: bytes) -> Head:
    try:
        head = Head.model_validate_json(data)
    except ValidationError:
        raise _no_backup(path) from None
    if head.prescore_backup > FORMAT:
        raise InvalidBackup(
            f"{path}: made by Prescore {head.version:.40}, in format {head.prescore_backup}; this "
            f"version reads up to {FORMAT}: restore it with that version"
        )
    return head


def _rows(path: Path, table: str, data: bytes) -> Rows:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        lines = file.read(_LONGEST_TEXT + 1)
    if len(lines) > _LONGEST_TEXT:
        raise InvalidBackup(f"{path}: damaged: a part of the table {table} is too long")
    columns, *rows = (json.loads(line) for line in lines.split(b"\n"))
    return Rows(table, columns, rows)


def _bounded(path: Path, member: tarfile.TarInfo, content: IO[bytes]) -> bytes:
    if member.size > _LONGEST_TEXT:
        raise InvalidBackup(f"{path}: damaged: {member.name:.100} has {member.size} bytes")
    data = content.read()
    if len(data) != member.size:
        raise EOFError("its end is missing")
    return data


def _no_backup(path: Path) -> InvalidBackup:
    return InvalidBackup(f"{path}: expected a file that `prescore backup` has made, found another")


def check(path: Path) -> tuple[Head, Manifest, set[bytes]]:
    """Read a whole backup and compare all of it with its checksums; the digests of its objects, in
    32 bytes each: there may be millions. Those that are known to be damaged are left out.
    """
    head = manifest = None
    counts: dict[str, int] = {}
    names, digests = hashlib.sha256(), set[bytes]()
    wrong: set[str] = set()
    for found in read(path):
        match found:
            case Head():
                head = found
            case Rows():
                counts[found.table] = counts.get(found.table, 0) + len(found.rows)
            case Object(digest, content):
                names.update(digest.encode())
                digests.add(raw(digest))
                if _digest(content) != digest:
                    wrong.add(digest)
            case Manifest():
                manifest = found
    assert head is not None
    assert manifest is not None
    if counts != {name: count for name, count in manifest.rows.items() if count}:
        raise InvalidBackup(f"{path}: damaged: it has not the rows that its manifest names")
    if names.hexdigest() != manifest.names:
        raise InvalidBackup(f"{path}: damaged: it has not the objects that its manifest names")
    if unknown := sorted(wrong - set(manifest.damaged)):
        raise InvalidBackup(
            f"{path}: damaged: the bytes of {len(unknown)} objects are others than when it was "
            f"made, {unknown[0]} among them. Use another backup"
        )
    return head, manifest, digests - {raw(digest) for digest in wrong}


def _digest(chunks: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for chunk in chunks:
        found.update(chunk)
    return f"sha256:{found.hexdigest()}"
