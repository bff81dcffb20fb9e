"""Datasets that have arrived: judged, and stored as a version."""

import asyncio
from functools import partial
from pathlib import Path

from prescore.models.datasets import Dataset
from service.contract.errors import InvalidRequest
from service.contract.formats.bundles import plain_tar
from service.contract.formats.bundles.files import ContentDigests
from service.engine.blobs import WholeUpload
from service.http.dependencies import Running
from service.http.entrance.uploads import Ask, Early
from service.stored import dataset_versions
from service.stored.dataset_versions import JudgedBundle

TAR = Early("beginning", lambda _: plain_tar.BLOCK)
_OF_FILES = (".tar", ".gz", ".tgz", ".zip", ".json", ".jsonl")


def check_name(name: str) -> None:
    """Raise for a file's name: curl adds it to an address that ends with a slash."""
    if name.lower().endswith(_OF_FILES):
        raise InvalidRequest(
            f"{name} is the name of a file, and a dataset is called as flickr8k is: curl adds the "
            "file's name to an address that ends with /",
            [("/path/name", f"expected a name without {', '.join(_OF_FILES)} at its end")],
        )


async def keep(service: Running, name: str, upload: WholeUpload, ask: Ask) -> tuple[Dataset, bool]:
    """Judge the whole bundle and store it; returns the version, and whether it is new."""
    records, blobs = service.records, service.blobs
    with blobs.derived.new() as images, blobs.derived.new() as captions:
        path = str(upload.path)
        facts = await ask("dataset", path=path, images=str(images))
        content = await _content(ask, path, captions)
        bundle = JudgedBundle(upload, facts, content, captions, images)
        storing = partial(
            dataset_versions.store_version, records, blobs, name, bundle, service.asker
        )
        return await asyncio.to_thread(storing)


async def _content(ask: Ask, path: str, captions: Path | None = None) -> ContentDigests:
    copy = None if captions is None else str(captions)
    return ContentDigests(**await ask("content", path=path, captions=copy))
