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
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any, NamedTuple

from pydantic import BaseModel, ConfigDict

from service.engine.blobs import place

FORMAT = 1
HEAD = "head.json"


class Head(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    prescore_backup: int  # the format
    version: str  # of Prescore
    revision: str  # of the record's tables
    made_at: float  # seconds since 1970: the moment that the backup shows


class Manifest(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    rows: dict[str, int]  # by table
    parts: dict[str, str]  # SHA-256 by name
    objects: int
    object_bytes: int
    names: str  # SHA-256 of the objects' digests, in their order
    lacking: list[str]  # digests that the record names, and that could not be read
    damaged: list[str]  # objects in the file whose bytes are not those of their names


class Rows(NamedTuple):
    """A part of a table."""

    table: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


class Object(NamedTuple):
    digest: str
    content: Iterator[bytes]


class Writer:
    def __init__(self, stream: IO[bytes]) -> None:
        self._tar = tarfile.open(fileobj=stream, mode="w")  # noqa: SIM115  `close`
        self._rows: dict[str, int] = {}
        self._parts: dict[str, str] = {}
        self._names = hashlib.sha256()
        self._damaged: list[str] = []
        self.objects = self.object_bytes = 0

    def head(self, head: Head) -> None:
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
        content = _Sized(size, chunks)
        self._tar.addfile(_member(f"objects/{place(digest)}", size), content)
        self.objects += 1
        self.object_bytes += size
        self._names.update(digest.encode())
        if content.digest() == digest:
            return True
        self._damaged.append(digest)
        return False

    def close(self, lacking: Sequence[str]) -> Manifest:
        """Write the manifest and the end of the file."""
        manifest = Manifest(
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


def raw(digest: str) -> bytes:
    return bytes.fromhex(digest.removeprefix("sha256:"))


def named(digest: bytes) -> str:
    return f"sha256:{digest.hex()}"


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    member.mode = 0o600
    return member


class _Sized(io.RawIOBase):
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
        """Of all that there was; "" if that was more or less than was said."""
        over = self._at < len(self._chunk) or next(self._chunks, None) is not None
        return f"sha256:{self._hash.hexdigest()}" if self._fits and not over else ""
