"""Requests for checkpoints, columns and datasets: send them, unless the service has them."""

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from prescore.errors import Refused
from prescore.files import bundles, tars
from prescore.files.reading import Body, digest_of_body
from prescore.http import answers, bounds, downloads, resumed, retries, uploads
from prescore.http.addresses import Address
from prescore.http.steps import Do, Request, Send, Steps, segment
from prescore.http.uploads import Progress
from prescore.models import Dataset
from prescore.names import check_dataset
from prescore.routes import asking

OLDER_VERSIONS = 20  # that are asked for besides the latest


def checkpoint(digest: str) -> str:
    return f"/v1/checkpoints/{segment(digest)}"


def columns(digest: str) -> str:
    return f"/v1/columns/{segment(digest)}"


def dataset(name: str) -> str:
    return f"/v1/datasets/{segment(name)}"


def has(address: Address, place: str) -> Steps[bool]:
    return retries.persistently(address, lambda: uploads.is_there(place))


def added_dataset(
    address: Address, name: str, bundle: Path, progress: Progress | None
) -> Steps[Dataset]:
    """The version with the bundle's content; it is sent if the service has no such version."""
    check_dataset(name)
    files = (yield Do(lambda: bundles.files_in(bundle))) if bundle.is_dir() else None
    body: Body = yield Do(lambda: bundles.body(bundle))
    return (yield from _added(address, name, _Bundle(body, files), progress))


def added_pictures(
    address: Address, name: str, folder: Path, progress: Progress | None
) -> Steps[Dataset]:
    """The version with the latest one's captions and the pictures in a folder."""
    check_dataset(name)
    with tempfile.TemporaryDirectory(prefix="prescore-") as here:
        captions = Path(here) / bundles.CAPTIONS
        yield from fetched_captions(address, name, captions)
        files = yield Do(lambda: bundles.files_with_pictures(captions, folder))
        body: Body = yield Do(lambda: tars.body(files))
        return (yield from _added(address, name, _Bundle(body, files), progress))


def changed(address: Address, name: str, fields: Mapping[str, bool]) -> Steps[Dataset]:
    body = json.dumps(fields).encode()
    request = Request("PATCH", dataset(name), headers=asking.JSON, body=body)
    response = yield from retries.sent(address, request)
    return answers.parsed(address.url, Dataset, response)


def picture(address: Address, name: str, image: str, size: int) -> Steps[bytes]:
    """A small form of an image's picture, as WebP."""
    path = f"{dataset(name)}/images/{segment(image)}"
    step = Send(Request("GET", path, params={"size": str(size)}), bounds.PICTURE_BYTES)

    def once() -> Steps[bytes]:
        response = yield step
        return bytes(response.content)

    content = yield from retries.persistently(address, once)
    if (content[:4], content[8:12]) != (b"RIFF", b"WEBP"):
        raise answers.not_prescore(address.url, f"expected WebP, found {content[:12]!r}")
    return content


def _added(
    address: Address, name: str, wanted: "_Bundle", progress: Progress | None
) -> Steps[Dataset]:
    known = yield from _version(address, name, wanted)
    if known is not None:
        return known
    body = wanted.body
    request = uploads.put(dataset(name), body, "application/x-tar", progress)
    if body.size > resumed.LARGE_BYTES:
        file = resumed.Wanted("dataset", (yield from wanted.digest()), name)
        response = yield from resumed.stored(address, file, body, progress, request)
    else:
        response = yield from retries.sent(address, request)
    return answers.parsed(address.url, Dataset, response)


def fetched_captions(address: Address, name: str, path: Path) -> Steps[None]:
    """Kept only if they have the digest that the service tells."""
    found = yield from asking.gotten(address, Dataset, dataset(name))
    request = Request("GET", dataset(str(found)), headers={"Accept": "application/x-ndjson"})
    yield from retries.persistently(address, lambda: downloads.saved(request, path, found.captions))


def _version(address: Address, name: str, wanted: "_Bundle") -> Steps[Dataset | None]:
    """The version of a dataset with this content, among the latest ones."""
    reference = name
    for _ in range(OLDER_VERSIONS + 1):
        try:
            found = yield from asking.gotten(address, Dataset, dataset(reference))
        except Refused as error:
            if error.status == 404:
                return None
            raise
        if (yield from wanted.is_in(found)):
            return found
        number = re.fullmatch(r"v([0-9]{1,9})", found.version)
        if number is None or int(number[1]) < 2:
            return None
        reference = f"{name}@v{int(number[1]) - 1}"
    return None


class _Bundle:
    """A bundle's digests, which are computed when they are first needed. `files`: of a tar that is
    made of them.
    """

    def __init__(self, body: Body, files: bundles.Files | None) -> None:
        self.body = body
        self._files = files
        self._content = ""
        self._digest = ""

    def is_in(self, version: Dataset) -> Steps[bool]:
        """Whether a version has the content of these files, or the bytes of this tar."""
        files = self._files
        if version.content is not None and files is not None:
            self._content = self._content or (yield Do(lambda: bundles.content(files)))
            return version.content == self._content
        return version.digest == (yield from self.digest())

    def digest(self) -> Steps[str]:
        self._digest = self._digest or (yield Do(lambda: digest_of_body(self.body)))
        return self._digest
