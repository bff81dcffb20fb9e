"""Objects by the SHA-256 of their content: whole or absent, never half, checked when read."""

import hashlib
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from service.contract.errors import BlobDamaged, BlobMissing

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_CHUNK = 1 << 20


class Upload(Protocol):
    """Bytes on their way in; nobody sees them before `commit`."""

    def write(self, data: bytes) -> None: ...

    @property
    def digest(self) -> str:
        """Of what was written so far."""
        ...

    def commit(self) -> str:
        """Publishes the object under its digest, durably; returns the digest."""
        ...


class Blobs(Protocol):
    def upload(self) -> AbstractContextManager[Upload]:
        """What is not committed when the block ends is gone."""
        ...

    def put(self, data: bytes) -> str: ...

    def put_file(self, path: Path) -> str: ...

    def path(self, digest: str, *, check: bool = True) -> Path:
        """A local file with the content; BlobMissing, or BlobDamaged where `check` finds so."""
        ...

    def has(self, digest: str) -> bool: ...

    def delete(self, digest: str) -> None: ...

    def sweep_uploads(self, older_than: float) -> int: ...


class FileBlobs:
    """A folder: objects/ab/cdef…, and uploads/ for what is on its way."""

    def __init__(self, folder: Path) -> None:
        self._objects = folder / "objects"
        self._uploads = folder / "uploads"
        self._objects.mkdir(parents=True, exist_ok=True)
        self._uploads.mkdir(parents=True, exist_ok=True)

    @contextmanager
    def upload(self) -> Iterator["FileUpload"]:
        upload = FileUpload(self._uploads / secrets.token_hex(16), self._target)
        try:
            yield upload
        finally:
            upload.discard()

    def put(self, data: bytes) -> str:
        with self.upload() as upload:
            upload.write(data)
            return upload.commit()

    def put_file(self, path: Path) -> str:
        with self.upload() as upload, path.open("rb") as stream:
            while chunk := stream.read(_CHUNK):
                upload.write(chunk)
            return upload.commit()

    def has(self, digest: str) -> bool:
        return self._target(digest).is_file()

    def path(self, digest: str, *, check: bool = True) -> Path:
        target = self._target(digest)
        if not target.is_file():
            raise BlobMissing(f"no object {digest} is stored")
        if check and digest_of(target) != digest:
            target.unlink(missing_ok=True)  # so that it is computed or uploaded again
            raise BlobDamaged(f"object {digest} was damaged on disk and has been removed")
        return target

    def delete(self, digest: str) -> None:
        self._target(digest).unlink(missing_ok=True)

    def digests(self) -> Iterator[str]:
        for file in self._objects.glob("*/*"):
            yield f"sha256:{file.parent.name}{file.name}"

    def sweep_uploads(self, older_than: float) -> int:
        """Removes what uploads left behind before that time (a process that was killed)."""
        old = [file for file in self._uploads.iterdir() if file.stat().st_mtime < older_than]
        for file in old:
            file.unlink(missing_ok=True)
        return len(old)

    def _target(self, digest: str) -> Path:
        if not DIGEST.fullmatch(digest):
            raise BlobMissing(f"expected sha256:<64 hex digits>, found {digest!r:.80}")
        name = digest.removeprefix("sha256:")
        return self._objects / name[:2] / name[2:]


class FileUpload:
    def __init__(self, partial: Path, target: Callable[[str], Path]) -> None:
        self._partial = partial
        self._target = target
        self._stream = partial.open("xb")
        self._hash = hashlib.sha256()
        self.size = 0

    @property
    def path(self) -> Path:
        """What was written so far (after `flush`), not yet published."""
        return self._partial

    def write(self, data: bytes) -> None:
        self._hash.update(data)
        self._stream.write(data)
        self.size += len(data)

    def flush(self) -> None:
        self._stream.flush()

    @property
    def digest(self) -> str:
        return f"sha256:{self._hash.hexdigest()}"

    def commit(self) -> str:
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()
        target = self._target(self.digest)
        target.parent.mkdir(exist_ok=True)
        self._partial.replace(target)
        _sync_folder(target.parent)
        return self.digest

    def discard(self) -> None:
        self._stream.close()
        self._partial.unlink(missing_ok=True)


def digest_of(path: Path) -> str:
    with path.open("rb") as stream:
        return f"sha256:{hashlib.file_digest(stream, 'sha256').hexdigest()}"


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
