"""Objects in an S3-compatible store, and a folder of copies before it.

Engines read files, so what is read is copied to this machine first and kept there; what was not
used for longest goes when the copies take too much room. Credentials and another address than the
usual one come from the AWS_… variables.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from service.contract.errors import BlobDamaged, BlobMissing, BlobUnreadable, StoreUnavailable
from service.works.blobs.files import FileBlobs, Store, Upload, place

if TYPE_CHECKING:
    from obstore.store import RetryConfig

_CHUNK = 1 << 23
_COPIES_BYTES = 50_000_000_000
_IN_USE_SECONDS = 3600
_PATIENCE: "RetryConfig" = {"max_retries": 4, "retry_timeout": timedelta(seconds=20)}


class RemoteBlobs(Store):
    def __init__(self, url: str, copies: Path, copies_bytes: int = _COPIES_BYTES) -> None:
        self._store = S3Store.from_url(url, retry_config=_PATIENCE)
        self._copies = FileBlobs(copies)
        self._objects = copies / "objects"
        self._room = copies_bytes

    def upload(self) -> AbstractContextManager[Upload]:
        return closing(Upload(self._copies.partial(), self._publish))

    def _publish(self, path: Path, digest: str) -> None:
        """The store first: a copy alone would be forgotten."""
        with _told():
            obstore.put(self._store, _name(digest), path)
        self._copies.adopt(path, digest)

    def has(self, digest: str) -> bool:
        try:
            with _told():
                obstore.head(self._store, _name(digest))
        except FileNotFoundError:
            return False
        return True

    def path(self, digest: str, *, check: bool = True) -> Path:
        with suppress(BlobUnreadable):
            found = self._copies.path(digest, check=check)
            os.utime(found)  # used just now
            return found
        self._make_room()
        with self._copies.upload() as upload:
            self._fetch(digest, upload.write)
            if upload.digest != digest:
                with _told():
                    obstore.delete(self._store, _name(digest))  # computed or uploaded again
                raise BlobDamaged(
                    digest, f"object {digest} was damaged in the store and has been removed"
                )
            upload.commit()
        return self._copies.path(digest, check=False)

    def _fetch(self, digest: str, write: Callable[[bytes], None]) -> None:
        try:
            with _told():
                for chunk in obstore.get(self._store, _name(digest)).stream(min_chunk_size=_CHUNK):
                    write(bytes(chunk))
        except FileNotFoundError:
            raise BlobMissing(digest, f"no object {digest} is stored") from None

    def old(self, before: float) -> Iterator[str]:
        with _told():
            for page in obstore.list(self._store, "objects"):
                for entry in page:
                    if entry["last_modified"].timestamp() < before:
                        yield "sha256:" + "".join(entry["path"].split("/")[-2:])

    def delete_old(self, digest: str, before: float) -> bool:
        """An S3 store cannot delete on a condition: between the look and the deletion lie some
        milliseconds in which somebody might put the object again; the grace period is hours.
        """
        with _told(), suppress(FileNotFoundError):
            if obstore.head(self._store, _name(digest))["last_modified"].timestamp() < before:
                obstore.delete(self._store, _name(digest))
                return True
        return False

    def sweep_uploads(self, older_than: float) -> int:
        return self._copies.sweep_uploads(older_than)

    def _make_room(self) -> None:
        """Not what was used just now: somebody may be about to read it."""
        files, held = [], 0
        for file in self._objects.glob("*/*"):
            with suppress(FileNotFoundError):
                status = file.stat()
                held += status.st_size
                if status.st_mtime < time.time() - _IN_USE_SECONDS:
                    files.append((status.st_mtime, status.st_size, file))
        excess = held - self._room
        for _, size, file in sorted(files):
            if excess <= 0:
                return
            file.unlink(missing_ok=True)  # who has it open still reads it
            excess -= size


def _name(digest: str) -> str:
    return f"objects/{place(digest)}"


@contextmanager
def _told() -> Iterator[None]:
    """What the store's library says, without its page of debugging."""
    try:
        yield
    except BaseError as error:
        raise StoreUnavailable(f"the object store: {str(error).splitlines()[0]:.300}") from None
