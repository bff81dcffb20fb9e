"""Blob store: objects by the SHA-256 of their content, stored completely or not at all.

`open_blobs` opens a folder (`folder`), or an S3-compatible store with a cache folder (`s3`).
"""

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from service.contract.errors import InvalidSetting
from service.engine.blobs.folder import Blobs, BlobUpload, FileBlobs, place_of_object

if TYPE_CHECKING:
    from service.engine.blobs.multipart import MultipartStaging

__all__ = ["BlobUpload", "Blobs", "FileBlobs", "open_blobs", "place_of_object"]


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
