"""Datasets for commands without a service: a local bundle, or a dataset of a service."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import prescore
from service.contract.assets import AssetFolders
from service.contract.errors import InvalidBundle, RequestRefused
from service.contract.formats import bundles
from service.contract.formats.bundles import files as stored
from workers import files

_USUAL_SPLIT = "test"
_TRAINING_SPLIT = "train"
_PATIENCE = 2.0  # seconds; short, since the name may be a misspelt path

ChooseSplits = Callable[[Sequence[str]], Sequence[str]]  # of a dataset; where none is named


@dataclass(frozen=True)
class DatasetSource:
    """One split of a bundle; `digest` is the digest of captions.jsonl."""

    name: str
    path: Path
    split: str
    digest: str

    def __str__(self) -> str:
        return f"{self.name.rstrip('/')}/{self.split}"

    @cached_property
    def items(self) -> list[bundles.BundleItem]:
        return bundles.read_split(self.path, self.split)

    @cached_property
    def splits(self) -> tuple[str, ...]:
        return tuple(bundles.list_splits(self.path))

    @cached_property
    def places(self) -> dict[str, int]:
        return bundles.index_images(self.items)


def find_source(
    text: str, places: AssetFolders, url: str | None = None, key_file: Path | None = None
) -> DatasetSource:
    """Find a dataset: `text` is a path (a folder or a tar) if it exists, else a name at a service.

    It may end with a slash and the split; by default the only split, or `test`.
    """
    return _find(text, _choose_usual, places, url, key_file)[0]


def find_local_source(text: str) -> DatasetSource:
    """Find a dataset with all its files on this machine, as `find_source` does."""
    sources = _find_local(text, _choose_usual)
    if not sources:
        raise RequestRefused(f"expected a dataset's folder or tar, found nothing at {text!r:.200}")
    return sources[0]


def find_training_sources(
    text: str, places: AssetFolders, url: str | None = None, key_file: Path | None = None
) -> list[DatasetSource]:
    """Find datasets to learn from: by default the split `train`, or all splits without one."""
    return _find(text, _choose_training, places, url, key_file)


def _choose_usual(splits: Sequence[str]) -> Sequence[str]:
    return splits if len(splits) == 1 else [_USUAL_SPLIT]


def _choose_training(splits: Sequence[str]) -> Sequence[str]:
    return [_TRAINING_SPLIT] if _TRAINING_SPLIT in splits else splits


def _find(
    text: str, choose: ChooseSplits, places: AssetFolders, url: str | None, key_file: Path | None
) -> list[DatasetSource]:
    if sources := _find_local(text, choose):
        return sources
    head, slash, split = text.rpartition("/")
    named = (lambda _: [split]) if split and slash else choose
    return _fetched(head if slash else text, named, places, url, key_file)


def _find_local(text: str, choose: ChooseSplits) -> list[DatasetSource]:
    """Find a dataset at a path, or at a path before a split; empty where there is none."""
    if Path(text).exists():
        return _sources(text, Path(text), choose)
    head, slash, split = text.rpartition("/")
    if slash and head and Path(head).exists():
        return _sources(head, Path(head), (lambda _: [split]) if split else choose)
    return []


def _sources(name: str, path: Path, choose: ChooseSplits) -> list[DatasetSource]:
    with files.name_file_in_errors(path / bundles.CAPTIONS):
        splits = bundles.list_splits(path)
    chosen, digest = choose(splits), _digest(path)
    for split in chosen:
        if split not in splits:
            raise RequestRefused(
                f"expected a split of {name}, one of {', '.join(sorted(splits))}, "
                f"found {split!r:.100}"
            )
    return [DatasetSource(name.rstrip("/") or name, path, split, digest) for split in chosen]


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    for chunk in stored.read_captions_in_chunks(path):
        digest.update(chunk)
    return f"sha256:{digest.hexdigest()}"


def _fetched(
    name: str, choose: ChooseSplits, places: AssetFolders, url: str | None, key_file: Path | None
) -> list[DatasetSource]:
    """Download a dataset's captions from a service, and keep them: a version never changes.

    Apart for each service: what one says of a digest counts for no other.
    """
    key = None if key_file is None else key_file.read_text("ascii").strip()
    try:
        with prescore.Client(url, key, patience=_PATIENCE) as client:
            found = client.dataset(name)
            pinned = f"{found.name}@{found.version}"
            folder = places.home / "cache" / "datasets" / _key(client.url, pinned, found.digest)
            if not _is_there(folder, found.captions):
                folder.mkdir(parents=True, exist_ok=True)
                client.fetch_captions(pinned, folder / bundles.CAPTIONS)
    except prescore.PrescoreClientError as error:
        said = " ".join(str(error).split("\n"))
        raise RequestRefused(
            f"found no bundle at {name}, and the service gave an error: {said}"
        ) from error
    try:
        return _sources(pinned, folder, choose)
    except InvalidBundle:
        (folder / bundles.CAPTIONS).unlink(missing_ok=True)
        raise


def _is_there(folder: Path, captions: str | None) -> bool:
    """True if captions are kept; with another digest than the service tells, they are not."""
    if not (folder / bundles.CAPTIONS).is_file():
        return False
    return captions is None or _digest(folder) == captions


def _key(*said: str) -> str:
    """The name of a folder, whatever the service says."""
    return hashlib.sha256("\n".join(said).encode("utf-8", "replace")).hexdigest()
