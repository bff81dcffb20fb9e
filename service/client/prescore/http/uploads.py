"""Uploads of checkpoints, columns and datasets, unless the service has them: streamed. A small file
is sent again from the start after a failure, a large one goes on where it was cut.
"""

import re
import tempfile
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

from prescore.errors import Refused
from prescore.files import bundles, models, tars
from prescore.files.bodies import Body, check_columns, compute_digest, file_body
from prescore.http import downloads, resumable_uploads
from prescore.http.transport import HttpRequest, Transport, quote_segment
from prescore.models import Dataset
from prescore.names import check_dataset_name

Progress = Callable[[int, int], None]  # bytes there, bytes in all; attempts begin where they begin

OLDER_VERSIONS = 20  # of a dataset that are asked for besides the latest


def upload_checkpoint(transport: Transport, path: Path, progress: Progress | None) -> str:
    """Send a checkpoint, or the files of a model; returns its digest."""
    return _upload_file(transport, models.build_body(path), "checkpoint", progress)


def upload_columns(transport: Transport, path: Path, progress: Progress | None) -> str:
    """Send a file of columns; returns its digest."""
    check_columns(path)
    return _upload_file(transport, file_body(path), "columns", progress)


def is_stored(transport: Transport, path: str) -> bool:
    """Check that the service has something there."""
    return transport.repeat(lambda: _is_stored(transport, path))


def add_dataset(
    transport: Transport, name: str, bundle: Path, progress: Progress | None
) -> Dataset:
    """The version with the bundle's content; it is sent if the service has no such version."""
    check_dataset_name(name)
    files = bundles.list_files(bundle) if bundle.is_dir() else None
    return _add_version(
        transport, name, _BundleUpload(transport, bundles.build_body(bundle), files), progress
    )


def add_pictures(
    transport: Transport, name: str, folder: Path, progress: Progress | None
) -> Dataset:
    """The version with the latest one's captions and the pictures in a folder."""
    check_dataset_name(name)
    with tempfile.TemporaryDirectory(prefix="prescore-") as here:
        captions = Path(here) / bundles.CAPTIONS
        fetch_captions(transport, name, captions)
        files = bundles.list_files_with_pictures(captions, folder)
        return _add_version(
            transport, name, _BundleUpload(transport, tars.build_body(files), files), progress
        )


def fetch_captions(transport: Transport, name: str, path: Path) -> None:
    """Download a dataset's captions; kept only if they have the digest that the service tells."""
    dataset = transport.get(Dataset, build_dataset_path(name))
    accepted = {"Accept": "application/x-ndjson"}
    request = HttpRequest("GET", build_dataset_path(str(dataset)), headers=accepted)
    downloads.fetch_file(transport, request, path, dataset.captions)


def build_dataset_path(name: str) -> str:
    return f"/v1/datasets/{quote_segment(name)}"


_FOLDERS = {"checkpoint": "/v1/checkpoints", "columns": "/v1/columns"}


def _upload_file(transport: Transport, body: Body, kind: str, progress: Progress | None) -> str:
    """Upload a file. Every attempt asks first: if an answer was lost, the upload may be
    complete.
    """
    body = _make_stoppable(transport, body)
    digest = compute_digest(body)
    path = f"{_FOLDERS[kind]}/{digest}"
    upload = _build_put(path, body, "application/octet-stream", progress)
    if body.size > resumable_uploads.LARGE_BYTES:
        if not is_stored(transport, path):
            resumable_uploads.store_file(
                transport, resumable_uploads.UploadTarget(kind, digest), body, progress, upload
            )
        return digest

    def attempt() -> None:
        if not _is_stored(transport, path):
            transport.send_once(upload)

    transport.repeat(attempt)
    return digest


def _is_stored(transport: Transport, path: str) -> bool:
    try:
        transport.send_once(HttpRequest("HEAD", path))
    except Refused as error:
        if error.status == 404:
            return False
        if error.status == 401:
            transport.send_once(HttpRequest("GET", "/v1/me"))  # a refusal with words, unlike HEAD's
        raise
    return True


def _build_put(path: str, body: Body, content_type: str, progress: Progress | None) -> HttpRequest:
    return HttpRequest(
        "PUT",
        path,
        headers={"Content-Type": content_type, "Content-Length": str(body.size)},
        body=lambda: resumable_uploads.report_chunks(body, progress),
        hold=resumable_uploads.STORE_SECONDS,
    )


def _make_stoppable(transport: Transport, body: Body) -> Body:
    """The body, which ends with an error where the transport is stopped."""

    def chunks(start: int = 0) -> Iterator[bytes]:
        for chunk in body.chunks(start):
            transport.check()
            yield chunk

    return Body(body.size, chunks)


def _add_version(
    transport: Transport, name: str, bundle: "_BundleUpload", progress: Progress | None
) -> Dataset:
    known = _find_version(transport, name, bundle)
    if known is not None:
        return known
    body = bundle.body
    request = _build_put(build_dataset_path(name), body, "application/x-tar", progress)
    if body.size > resumable_uploads.LARGE_BYTES:
        file = resumable_uploads.UploadTarget("dataset", bundle.digest, name)
        reply = resumable_uploads.store_file(transport, file, body, progress, request)
    else:
        reply = transport.send(request)
    return reply.parsed(Dataset)


def _find_version(transport: Transport, name: str, bundle: "_BundleUpload") -> Dataset | None:
    """The version of a dataset with this content, among the latest ones."""
    reference = name
    for _ in range(OLDER_VERSIONS + 1):
        try:
            dataset = transport.get(Dataset, build_dataset_path(reference))
        except Refused as error:
            if error.status == 404:
                return None
            raise
        if bundle.is_in(dataset):
            return dataset
        number = re.fullmatch(r"v([0-9]{1,9})", dataset.version)
        if number is None or int(number[1]) < 2:
            return None
        reference = f"{name}@v{int(number[1]) - 1}"
    return None


class _BundleUpload:
    """A bundle, whose digests are computed when they are first needed. `files`: of a tar that is
    made of them.
    """

    def __init__(self, transport: Transport, body: Body, files: bundles.Files | None) -> None:
        self.body = _make_stoppable(transport, body)
        self._transport = transport
        self._files = files

    @cached_property
    def digest(self) -> str:
        return compute_digest(self.body)

    @cached_property
    def _content(self) -> str | None:
        return (
            None
            if self._files is None
            else bundles.compute_content_digest(self._files, self._digest_of)
        )

    def is_in(self, version: Dataset) -> bool:
        """True where a version has the content of these files, or the bytes of this tar."""
        if version.content is not None and self._content is not None:
            return version.content == self._content
        return version.digest == self.digest

    def _digest_of(self, path: Path) -> str:
        return compute_digest(_make_stoppable(self._transport, file_body(path)))
