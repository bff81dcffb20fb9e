"""The file of a backup: a tar, written in one go, in which nothing can be lost unnoticed.

    head.json                        what this is: `Head`
    record/runs/00001.jsonl.gz       rows: the first line names the columns
    objects/ab/cdef…                 an object, whose name is its SHA-256
    manifest-<SHA-256>.json          the last one: what there has to be: `Manifest`

A file that was cut off has no manifest. The manifest has a checksum of each part of the record, and
one of the objects' names.
"""

import gzip
import hashlib
import io
import json
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from service.contract.errors import InvalidBackup
from service.engine.blobs import place_of_object

FORMAT = 1
HEAD = "head.json"


class BackupHead(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    prescore_backup: int  # the format
    version: str  # of Prescore
    revision: str  # of the record's tables
    made_at: float  # seconds since 1970: the moment that the backup shows


class BackupManifest(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    rows: dict[str, int]  # by table
    parts: dict[str, str]  # SHA-256 by name
    objects: int
    object_bytes: int
    names: str  # SHA-256 of the objects' digests, in their order
    lacking: list[str]  # digests that the record names, and that could not be read
    damaged: list[str]  # objects in the file whose bytes are not those of their names


class BackupRows(NamedTuple):
    """A part of a table."""

    table: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


class BackupObject(NamedTuple):
    digest: str
    content: Iterator[bytes]


class BackupWriter:
    def __init__(self, stream: IO[bytes]) -> None:
        self._tar = tarfile.open(fileobj=stream, mode="w")  # noqa: SIM115  `close`
        self._rows: dict[str, int] = {}
        self._parts: dict[str, str] = {}
        self._names = hashlib.sha256()
        self._damaged: list[str] = []
        self.objects = self.object_bytes = 0

    def head(self, head: BackupHead) -> None:
        self._put(HEAD, head.model_dump_json(indent=1).encode())

    def rows(self, table: str, columns: Sequence[str], rows: Sequence[str]) -> None:
        """A part of a table; each row is a line of JSON."""
        name = f"record/{table}/{len(self._parts) + 1:05}.jsonl.gz"
        lines = "\n".join([json.dumps(list(columns)), *rows])
        data = gzip.compress(lines.encode(), compresslevel=6, mtime=0)
        self._put(name, data)
        self._parts[name] = hashlib.sha256(data).hexdigest()
        self._rows[table] = self._rows.get(table, 0) + len(rows)

    def object(self, digest: str, size: int, chunks: Iterable[bytes]) -> bool:
        """Write an object; False if its bytes are not those of its digest."""
        content = _SizedStream(size, chunks)
        self._tar.addfile(_member(f"objects/{place_of_object(digest)}", size), content)
        self.objects += 1
        self.object_bytes += size
        self._names.update(digest.encode())
        if content.digest() == digest:
            return True
        self._damaged.append(digest)
        return False

    def close(self, lacking: Sequence[str]) -> BackupManifest:
        """Write the manifest and the end of the file."""
        manifest = BackupManifest(
            rows=self._rows,
            parts=self._parts,
            objects=self.objects,
            object_bytes=self.object_bytes,
            names=self._names.hexdigest(),
            lacking=sorted(lacking),
            damaged=self._damaged,
        )
        data = manifest.model_dump_json(indent=1).encode()
        self._put(f"manifest-{hashlib.sha256(data).hexdigest()}.json", data)
        self._tar.close()
        return manifest

    def _put(self, name: str, data: bytes) -> None:
        self._tar.addfile(_member(name, len(data)), io.BytesIO(data))


def parse_digest(digest: str) -> bytes:
    return bytes.fromhex(digest.removeprefix("sha256:"))


def format_digest(digest: bytes) -> str:
    return f"sha256:{digest.hex()}"


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    member.mode = 0o600
    return member


class _SizedStream(io.RawIOBase):
    """Chunks as a file of exactly that size, which a tar needs: zeros stand for what is missing."""

    def __init__(self, size: int, chunks: Iterable[bytes]) -> None:
        self._left, self._chunks = size, iter(chunks)
        self._chunk, self._at = b"", 0
        self._hash = hashlib.sha256()
        self._fits = True

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        data = b"".join(self._some(wanted))
        self._left -= wanted
        self._hash.update(data)
        return data

    def _some(self, wanted: int) -> Iterator[bytes]:
        while wanted > 0:
            if self._at == len(self._chunk):
                self._chunk, self._at = next(self._chunks, b""), 0
                if not self._chunk:
                    self._fits = False
                    self._chunk = bytes(wanted)
            taken = self._chunk[self._at : self._at + wanted]
            self._at += len(taken)
            wanted -= len(taken)
            yield taken

    def digest(self) -> str:
        """Return the digest of all chunks; "" if they were more or fewer bytes than announced."""
        over = self._at < len(self._chunk) or next(self._chunks, None) is not None
        return f"sha256:{self._hash.hexdigest()}" if self._fits and not over else ""


_CHUNK = 1 << 20
_LONGEST_TEXT = 64 << 20  # of a part of the record or the manifest, unpacked
_PART = re.compile(r"record/([a-z0-9_]{1,63})/[0-9]{5,9}\.jsonl\.gz")
_OBJECT = re.compile(r"objects/([0-9a-f]{2})/([0-9a-f]{62})")
_MANIFEST = re.compile(r"manifest-([0-9a-f]{64})\.json")


def read_backup(path: Path) -> Iterator[BackupHead | BackupRows | BackupObject | BackupManifest]:
    """All that a backup holds, in its order: first its head, at the end its manifest.

    Parts of the record and the manifest are checked by their own checksums; an object's content is
    for the caller to check. InvalidBackup: no backup, one that was cut off, or a damaged one.
    """
    found: BackupHead | BackupRows | BackupObject | BackupManifest | None = None
    sums: dict[str, str] = {}
    with _translated(path), _opened(path) as tar:
        for member in tar:
            content = tar.extractfile(member)
            if isinstance(found, BackupManifest) or content is None:
                raise InvalidBackup(f"{path}: damaged: {member.name!r:.100} is not expected")
            found = _read(path, member, content, sums, is_first=found is None)
            yield found
    if found is None:
        raise _no_backup(path)
    if not isinstance(found, BackupManifest):
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
) -> BackupHead | BackupRows | BackupObject | BackupManifest:
    if is_first != (member.name == HEAD):
        raise _no_backup(path) if is_first else InvalidBackup(f"{path}: damaged: two heads")
    if is_first:
        return _head(path, _bounded(path, member, content))
    if of := _OBJECT.fullmatch(member.name):
        return BackupObject(f"sha256:{of[1]}{of[2]}", _chunks(path, content))
    if of := _PART.fullmatch(member.name):
        data = _bounded(path, member, content)
        sums[member.name] = hashlib.sha256(data).hexdigest()
        return _rows(path, of[1], data)
    if of := _MANIFEST.fullmatch(member.name):
        data = _bounded(path, member, content)
        if hashlib.sha256(data).hexdigest() == of[1]:
            manifest = BackupManifest.model_validate_json(data)
            if manifest.parts == sums:
                return manifest
        raise InvalidBackup(f"{path}: damaged: what it holds is not what its manifest says")
    raise InvalidBackup(f"{path}: damaged: {member.name!r:.100} is not expected")


def _head(path: Path, data: bytes) -> BackupHead:
    try:
        head = BackupHead.model_validate_json(data)
    except ValidationError:
        raise _no_backup(path) from None
    if head.prescore_backup > FORMAT:
        raise InvalidBackup(
            f"{path}: made by Prescore {head.version:.40}, in format {head.prescore_backup}; this "
            f"version reads up to {FORMAT}: restore it with that version"
        )
    return head


def _rows(path: Path, table: str, data: bytes) -> BackupRows:
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        lines = file.read(_LONGEST_TEXT + 1)
    if len(lines) > _LONGEST_TEXT:
        raise InvalidBackup(f"{path}: damaged: a part of the table {table} is too long")
    columns, *rows = (json.loads(line) for line in lines.split(b"\n"))
    return BackupRows(table, columns, rows)


def _bounded(path: Path, member: tarfile.TarInfo, content: IO[bytes]) -> bytes:
    if member.size > _LONGEST_TEXT:
        raise InvalidBackup(f"{path}: damaged: {member.name:.100} has {member.size} bytes")
    data = content.read()
    if len(data) != member.size:
        raise EOFError("its end is missing")
    return data


def _no_backup(path: Path) -> InvalidBackup:
    return InvalidBackup(f"{path}: expected a file that `prescore backup` has made, found another")


def check_archive(path: Path) -> tuple[BackupHead, BackupManifest, set[bytes]]:
    """Read a whole backup and compare all of it with its checksums; the digests of its objects, in
    32 bytes each: there may be millions. Those that are known to be damaged are left out.
    """
    head = manifest = None
    counts: dict[str, int] = {}
    names, digests = hashlib.sha256(), set[bytes]()
    wrong: set[str] = set()
    for found in read_backup(path):
        match found:
            case BackupHead():
                head = found
            case BackupRows():
                counts[found.table] = counts.get(found.table, 0) + len(found.rows)
            case BackupObject(digest, content):
                names.update(digest.encode())
                digests.add(parse_digest(digest))
                if _digest(content) != digest:
                    wrong.add(digest)
            case BackupManifest():
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
    return head, manifest, digests - {parse_digest(digest) for digest in wrong}


def _digest(chunks: Iterable[bytes]) -> str:
    found = hashlib.sha256()
    for chunk in chunks:
        found.update(chunk)
    return f"sha256:{found.hexdigest()}"
