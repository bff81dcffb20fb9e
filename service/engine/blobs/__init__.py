"""Objects by the SHA-256 of their content: stored completely or not at all, checked when read.

They are in a folder (`files`), or in an S3-compatible store with a cache folder (`remote`).
"""

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote, urlsplit

from service.contract.errors import InvalidSetting
from service.engine.blobs.derived_files import DerivedFiles
from service.engine.blobs.folder import (
    BlobUpload,
    FileBlobs,
    PartialHash,
    ResumableUpload,
    place_of_object,
)

if TYPE_CHECKING:
    from service.engine.blobs.multipart import MultipartStaging

__all__ = [
    "BlobUpload",
    "Blobs",
    "DerivedFiles",
    "FileBlobs",
    "WholeUpload",
    "open_blobs",
    "place_of_object",
]


class WholeUpload(Protocol):
    """A `BlobUpload` or a `ResumableUpload` that has all its bytes."""

    path: Path
    size: int

    @property
    def digest(self) -> str: ...

    def commit(self) -> str: ...


class Blobs(Protocol):
    derived: DerivedFiles
    staging: "MultipartStaging | None"  # where clients send large files to the store themselves

    def upload(self) -> AbstractContextManager[BlobUpload]:
        """An upload, which is deleted at the end of the block unless it was committed."""
        ...

    def resumed(self, name: str, hashed: PartialHash | None = None) -> ResumableUpload:
        """An upload of that name, which stays when it is closed; `Held` while another has it."""
        ...

    def unended(self, name: str) -> Path:
        """The file of such an upload."""
        ...

    def all_unended(self, before: float) -> Iterable[str]:
        """The names of such uploads to which nothing was written since that time."""
        ...

    def put(self, data: bytes) -> str: ...

    def put_file(self, path: Path) -> str: ...

    def path(self, digest: str, *, check: bool = True) -> Path:
        """A local file with the content; raises BlobMissing or, with `check`, BlobDamaged."""
        ...

    def has(self, digest: str) -> bool: ...

    def stream(self, digest: str) -> tuple[int, Iterator[bytes]]:
        """An object's size and its content, which is not checked, without a copy on this machine;
        raises BlobMissing.
        """
        ...

    def old(self, before: float) -> Iterable[str]:
        """Digests of objects that were last put before that time."""
        ...

    def delete_old(self, digest: str, before: float) -> bool:
        """Delete an object unless it was put again since that time; whether it was deleted."""
        ...

    def sweep_uploads(self, older_than: float) -> int:
        """Delete files of uploads that never ended: those of processes that are dead, where the
        file system can tell, and those older than that time.
        """
        ...


def open_blobs(
    url: str | None,
    home: Path,
    public_url: str | None = None,
    *,
    hurried: bool = False,
    copying: bool = True,
) -> Blobs:
    """Open `file:///folder` or `s3://bucket/prefix`; None: the folder `blobs` in `home`. `hurried`:
    for who cannot wait long for a store that does not answer. Not `copying`: what is put into a
    store is not kept on this machine too. `public_url`: where clients reach it, if they do.
    """
    staging = None if public_url is None else _staging(url, public_url)
    if url is None:
        return FileBlobs(home / "blobs")
    parts = urlsplit(url)
    if parts.scheme == "file" and parts.netloc in ("", "localhost") and parts.path:
        return FileBlobs(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc:
        from service.engine.blobs.s3 import S3Blobs  # noqa: PLC0415  only where S3 is used

        return S3Blobs(url, home / "copies", staging, hurried=hurried, copying=copying)
    raise InvalidSetting(
        "PRESCORE_BLOB_URL: expected file:///folder or s3://bucket/prefix, "
        f"found {parts.scheme or 'no scheme'}:…"
    )


def _staging(url: str | None, public_url: str) -> "MultipartStaging":
    if urlsplit(url or "").scheme != "s3":
        raise InvalidSetting(
            "PRESCORE_BLOB_PUBLIC_URL: clients can send files to a store of s3:// alone; take it "
            "away, or set PRESCORE_BLOB_URL=s3://bucket/prefix"
        )
    try:
        from service.engine.blobs.multipart import MultipartStaging  # noqa: PLC0415  botocore is an extra
    except ModuleNotFoundError:
        raise InvalidSetting(
            "PRESCORE_BLOB_PUBLIC_URL needs botocore: pip install 'prescore[s3]'"
        ) from None
    return MultipartStaging(url or "", public_url)
