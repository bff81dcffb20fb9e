"""Requests for checkpoints, columns and datasets: send them, unless the service has them."""

import re
from pathlib import Path

from prescore.errors import Refused
from prescore.files import bundles
from prescore.files.reading import Body, digest_of_body
from prescore.http import answers, downloads, retries, uploads
from prescore.http.addresses import Address
from prescore.http.steps import Do, Request, Steps, segment
from prescore.http.uploads import Progress
from prescore.models import Dataset
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
    place = dataset(name)
    body: Body = yield Do(lambda: bundles.body(bundle))
    known = yield from _version(address, name, _Bundle(bundle, body))
    if known is not None:
        return known
    request = uploads.put(place, body, "application/x-tar", progress)
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
            if error.status in (404, 422):  # a name that is not allowed is told by the upload
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
    """A bundle's digests, which are computed when they are first needed."""

    def __init__(self, path: Path, body: Body) -> None:
        self._path = path
        self._body = body
        self._content = ""
        self._digest = ""

    def is_in(self, version: Dataset) -> Steps[bool]:
        """Whether a version has the content of this folder, or the bytes of this tar."""
        if version.content is not None and self._path.is_dir():
            self._content = self._content or (yield Do(lambda: bundles.content(self._path)))
            return version.content == self._content
        self._digest = self._digest or (yield Do(lambda: digest_of_body(self._body)))
        return version.digest == self._digest
