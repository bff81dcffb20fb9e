"""Objects in an S3-compatible store, with a cache folder on this machine.

Workers read files, so an object is copied to the cache before it is read; the least recently used
copies are deleted when the cache is full. Credentials and the endpoint come from the AWS_…
variables.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import timedelta
from pathlib import Path
from threading import BoundedSemaphore
from typing import TYPE_CHECKING, cast

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from service.contract.errors import BlobDamaged, BlobUnreadable, StoreUnavailable
from service.engine.blobs.derived_files import delete_oldest
from service.engine.blobs.folder import Blobs, FileBlobs, missing_blob, place_of_object

if TYPE_CHECKING:
    from obstore import GetResult
    from obstore.store import ClientConfig, RetryConfig

    from service.engine.blobs.multipart import MultipartStaging

_CHUNK = 1 << 23
_PART = 5 << 20  # bytes; a store takes 10,000 parts of an object, which is 52 GB
_PARTS_AT_ONCE = 2
_LARGE = BoundedSemaphore(2)  # objects of several parts that are put at a time: parts are in memory
_TRIES = 4  # of a second each, before a large object that was received is given up
_COPIES_BYTES = 50_000_000_000
_IN_USE_SECONDS = 3600
_PATIENCE: "RetryConfig" = {"max_retries": 4, "retry_timeout": timedelta(seconds=20)}
_ONCE: "RetryConfig" = {"max_retries": 0, "retry_timeout": timedelta(seconds=1)}
_HURRIED = {"timeout": "1s"}
# What variables AWS_… say of connections: options of ours take the place of all of them.
_CONNECTIONS = (
    "allow_http",
    "allow_invalid_certificates",
    "proxy_ca_certificate",
    "proxy_excludes",
    "proxy_url",
)


class S3Blobs(Blobs):
    def __init__(
        self,
        url: str,
        copies: Path,
        staging: "MultipartStaging | None" = None,
        copies_bytes: int = _COPIES_BYTES,
        *,
        hurried: bool = False,
        copying: bool = True,
    ) -> None:
        """Open the store. `hurried`: ask whether it answers within a second before each longer
        exchange. `copying`: objects that are put are kept in `copies` too.
        """
        self._store = self._asked = S3Store.from_url(url, retry_config=_PATIENCE)
        self._hurried, self._copying = hurried, copying
        if hurried:
            options = cast("ClientConfig", {**_connections(), **_HURRIED})
            self._asked = S3Store.from_url(url, retry_config=_ONCE, client_options=options)
        super().__init__(copies, staging)
        self._copies = FileBlobs(copies)
        self._objects = copies / "objects"
        self._room = copies_bytes

    def publish(self, path: Path, digest: str) -> None:
        """Write to the store first, since copies may be deleted."""
        is_large = path.stat().st_size > _PART
        if self._hurried:
            self._check_answering(digest, _TRIES if is_large else 1)
        with _LARGE if is_large else nullcontext(), _translated():
            self._put(path, digest)
        if self._copying:
            self._copies.publish(path, digest)

    def _put(self, path: Path, digest: str) -> None:
        store, name = self._store, _name(digest)
        try:
            obstore.put(store, name, path, chunk_size=_PART, max_concurrency=_PARTS_AT_ONCE)
        except FileNotFoundError as error:  # parts that are given up, and are gone too
            raise _unavailable(error) from None

    def _check_answering(self, digest: str, tries: int) -> None:
        """A store that takes in other large objects may need more than a second once."""
        for _ in range(tries - 1):
            with suppress(StoreUnavailable):
                self.has(digest)
                return
        self.has(digest)

    def has(self, digest: str) -> bool:
        try:
            with _translated():
                obstore.head(self._asked, _name(digest))
        except FileNotFoundError:
            return False
        return True

    def path(self, digest: str, *, check: bool = True) -> Path:
        with suppress(BlobUnreadable):
            found = self._copies.path(digest, check=check)
            os.utime(found)  # marks the copy as used
            return found
        if self._hurried and not self.has(digest):
            raise missing_blob(digest)
        self._make_room()
        with self._copies.upload() as upload:
            for chunk in self.stream(digest)[1]:
                upload.write(chunk)
            if upload.digest != digest:
                with _translated():
                    # So that it is computed or uploaded again.
                    obstore.delete(self._store, _name(digest))
                raise BlobDamaged(
                    digest, f"object {digest} was damaged in the store and has been removed"
                )
            upload.commit()
        return self._copies.path(digest, check=False)

    def stream(self, digest: str) -> tuple[int, Iterator[bytes]]:
        try:
            with _translated():
                found = obstore.get(self._store, _name(digest))
        except FileNotFoundError:
            raise missing_blob(digest) from None
        return found.meta["size"], _chunks(found)

    def old(self, before: float) -> Iterator[str]:
        with _translated():
            for page in obstore.list(self._store, "objects"):
                for entry in page:
                    if entry["last_modified"].timestamp() < before:
                        yield "sha256:" + "".join(entry["path"].split("/")[-2:])

    def delete_old(self, digest: str, before: float) -> bool:
        """S3 cannot delete on a condition: an object that is put again in the milliseconds between
        look and deletion would be lost. The grace period of hours makes that unlikely.
        """
        with _translated(), suppress(FileNotFoundError):
            if obstore.head(self._store, _name(digest))["last_modified"].timestamp() < before:
                obstore.delete(self._store, _name(digest))
                return True
        return False

    def _make_room(self) -> None:
        """Delete old copies until the cache fits, but none of the last hour: they may be in use."""
        delete_oldest(self._objects, self._room, time.time() - _IN_USE_SECONDS)


def _name(digest: str) -> str:
    return f"objects/{place_of_object(digest)}"


def _chunks(found: "GetResult") -> Iterator[bytes]:
    with _translated():
        for chunk in found.stream(min_chunk_size=_CHUNK):
            yield bytes(chunk)


def _connections() -> dict[str, str]:
    found = {name: os.environ.get(f"AWS_{name.upper()}") for name in _CONNECTIONS}
    return {name: value for name, value in found.items() if value}


def _unavailable(error: Exception) -> StoreUnavailable:
    """Make StoreUnavailable of an error, with only the first line of the library's text."""
    return StoreUnavailable(f"the object store: {str(error).splitlines()[0]:.300}")


@contextmanager
def _translated() -> Iterator[None]:
    """Raise errors of the store's library as StoreUnavailable."""
    try:
        yield
    except BaseError as error:
        raise _unavailable(error) from None
