"""Multipart uploads: files that clients send to an S3-compatible store themselves.

A client gets a URL for each part, which holds for a while and for exactly so many bytes; it never
sees the store's credentials. What a file becomes is decided once it is whole: until then it lies
apart from all objects, and nobody can write to it afterwards.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit

import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from service.contract.errors import StoreUnavailable

_FOLDER = "staged"
_CHUNK = 1 << 23
_REGION = "us-east-1"
_GONE = frozenset({"404", "NoSuchKey", "NoSuchUpload", "NotFound"})
_OPTIONS: Mapping[str, Any] = {
    "signature_version": "s3v4",
    "connect_timeout": 2,
    "read_timeout": 60,  # a store puts together 50 GB before it answers
    "retries": {"mode": "standard", "total_max_attempts": 3},
    "s3": {"addressing_style": "path"},
    # Sums would be signed into URLs, of bytes that are not known yet.
    "request_checksum_calculation": "when_required",
    "response_checksum_validation": "when_required",
}


class MultipartStaging:
    """Staged uploads. `public_url`: where clients reach the store of `url` (s3://bucket/prefix)."""

    def __init__(self, url: str, public_url: str) -> None:
        parts = urlsplit(url)
        self._bucket = parts.netloc
        self._folder = "/".join(filter(None, (parts.path.strip("/"), _FOLDER)))
        own = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT")
        self._store = _client(own)
        self._signer = _client(public_url)  # which sends nothing: a URL's host is signed too

    def begin(self, name: str) -> str:
        """Begin a multipart upload under that name; returns its id in the store."""
        with _translated():
            begun = self._store.create_multipart_upload(**self._at(name))
        return str(begun["UploadId"])

    def held(self, name: str, begun: str) -> dict[int, int] | None:
        """Bytes of each part in the store; None if the parts were put together or given up."""
        try:
            with _translated():
                return {each["PartNumber"]: each["Size"] for each in self._parts(name, begun)}
        except FileNotFoundError:
            return None

    def url(self, name: str, begun: str, number: int, size: int, seconds: int) -> str:
        """The URL to which a part of exactly this size is put, within so many seconds."""
        part = {"UploadId": begun, "PartNumber": number, "ContentLength": size}
        found = self._signer.generate_presigned_url(
            "upload_part", {**self._at(name), **part}, seconds
        )
        return str(found)

    def assemble(self, name: str, begun: str) -> None:
        """Make one file of all parts. Nothing happens where they are no more."""
        with suppress(FileNotFoundError), _translated():
            parts = [
                {"PartNumber": each["PartNumber"], "ETag": each["ETag"]}
                for each in self._parts(name, begun)
            ]
            self._store.complete_multipart_upload(
                **self._at(name), UploadId=begun, MultipartUpload={"Parts": parts}
            )

    def size(self, name: str) -> int | None:
        """Bytes of the whole file; None where it is not there."""
        try:
            with _translated():
                return int(self._store.head_object(**self._at(name))["ContentLength"])
        except FileNotFoundError:
            return None

    def stream(self, name: str) -> Iterator[bytes]:
        """The whole file; FileNotFoundError where it is not there."""
        with _translated():
            yield from self._store.get_object(**self._at(name))["Body"].iter_chunks(_CHUNK)

    def forget(self, name: str, begun: str | None = None) -> None:
        """Delete the file and its parts."""
        with suppress(FileNotFoundError), _translated():
            if begun is not None:
                self._store.abort_multipart_upload(**self._at(name), UploadId=begun)
        with suppress(FileNotFoundError), _translated():
            self._store.delete_object(**self._at(name))

    def old(self, before: float) -> Iterator[tuple[str, str | None]]:
        """Names of older uploads with their ids in the store, and of older files with None."""
        where = {"Bucket": self._bucket, "Prefix": f"{self._folder}/"}
        uploads = self._store.get_paginator("list_multipart_uploads")
        files = self._store.get_paginator("list_objects_v2")
        with _translated():
            for page in uploads.paginate(**where):
                for each in page.get("Uploads", []):
                    if each["Initiated"].timestamp() < before:
                        yield each["Key"].rpartition("/")[2], each["UploadId"]
            for page in files.paginate(**where):
                for each in page.get("Contents", []):
                    if each["LastModified"].timestamp() < before:
                        yield each["Key"].rpartition("/")[2], None

    def _parts(self, name: str, begun: str) -> Iterator[Mapping[str, Any]]:
        pages = self._store.get_paginator("list_parts")
        for page in pages.paginate(**self._at(name), UploadId=begun):
            yield from page.get("Parts", [])

    def _at(self, name: str) -> dict[str, str]:
        return {"Bucket": self._bucket, "Key": f"{self._folder}/{name}"}


def _client(url: str | None) -> Any:
    """Make a client, with credentials of AWS' own sources: variables, files, a machine's role."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or _REGION
    session = botocore.session.get_session()
    config = Config(**_OPTIONS)
    return session.create_client("s3", region, endpoint_url=url or None, config=config)


@contextmanager
def _translated() -> Iterator[None]:
    """Raise what the store says as FileNotFoundError or StoreUnavailable."""
    try:
        yield
    except ClientError as error:
        told = error.response.get("Error", {})
        if told.get("Code") in _GONE:
            raise FileNotFoundError from None
        raise _unavailable(told.get("Message") or str(error)) from None
    except (BotoCoreError, OSError) as error:
        if isinstance(error, FileNotFoundError):
            raise
        raise _unavailable(type(error).__name__) from None


def _unavailable(reason: str) -> StoreUnavailable:
    first = (reason.splitlines() or [""])[0]
    return StoreUnavailable(f"the object store: {first:.300}")
