"""Objects by the SHA-256 of their content: whole or absent, never half, checked when read.

In a folder (`files`), or in an S3-compatible store with a folder of copies before it (`remote`).
"""

from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from service.contract.errors import InvalidSetting
from service.works.blobs.files import FileBlobs, Upload

__all__ = ["Blobs", "FileBlobs", "Upload", "open_blobs"]


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

    def old(self, before: float) -> Iterable[str]:
        """Digests of objects that nobody has put since that time."""
        ...

    def delete_old(self, digest: str, before: float) -> bool:
        """Deletes the object unless somebody has put it again since that time."""
        ...

    def sweep_uploads(self, older_than: float) -> int:
        """Removes what uploads left behind before that time (a process that was killed)."""
        ...


def open_blobs(url: str | None, home: Path) -> Blobs:
    """`file:///folder` or `s3://bucket/prefix`; None is a folder at home."""
    if url is None:
        return FileBlobs(home / "blobs")
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return FileBlobs(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc:
        from service.works.blobs.remote import RemoteBlobs  # noqa: PLC0415  where it is used

        return RemoteBlobs(url, home / "copies")
    raise InvalidSetting(
        "PRESCORE_BLOB_URL: expected file:///folder or s3://bucket/prefix, "
        f"found {parts.scheme or 'no scheme'}:…"
    )
