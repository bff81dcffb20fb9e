"""Dataset bundles: a tar or a folder with captions.jsonl, perhaps features and images.

Read as a stream, one line at a time, without numpy; errors name line and field. A bundle may be an
attack: tar members are never extracted, and lengths are limited before they are read.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, Protocol

from prescore import foreign
from service.contract import limits, wording
from service.contract.errors import InvalidBundle
from service.contract.formats import strict_json
from service.contract.formats.bundles import plain_tar
from service.contract.formats.bundles.features import FEATURES as FEATURES
from service.contract.formats.bundles.features import FeaturesHeader as FeaturesHeader
from service.contract.formats.bundles.features import parse_features_header as parse_features_header

CAPTIONS = "captions.jsonl"

_CALLED: Mapping[str, tuple[str, ...]] = {  # fields by what others call them
    "image": ("image_id", "file_name", "filename"),
    "references": ("captions", "caption", "refs", "sentences"),
}
_MOST_NAMES = 20  # of a line, that are compared with the right ones
_FIELDS = frozenset({"image", "id", "split", "references"})
_NUMBER = re.compile("0|[1-9][0-9]{0,17}")  # an id that JSON readers write as the same text


@dataclass(frozen=True)
class BundleItem:
    """One image and its references."""

    image: str
    split: str
    references: tuple[str, ...]
    id: str | None = None  # as text, whatever the file had


def read_items(path: Path) -> Iterator[BundleItem]:
    """The bundle's images in the file's order; raises InvalidBundle at the first wrong line."""
    with open_member(path, CAPTIONS) as stream:
        yield from parse_items(stream, NamesInMemory())


def parse_items(stream: IO[bytes], names: "NameRegistry") -> Iterator[BundleItem]:
    """The images in a captions.jsonl; `names` sees to it that each has its own."""
    return _items(iter(lambda: stream.readline(limits.LINE_BYTES + 1), b""), names)


def list_splits(path: Path) -> list[str]:
    """The names of the splits; reads, and so checks, every line."""
    return list(dict.fromkeys(item.split for item in read_items(path)))


def read_split(path: Path, split: str) -> list[BundleItem]:
    """All images of one split; InvalidBundle names the splits that exist if there are none."""
    return select_split(read_items(path), split)


def select_split(items: Iterable[BundleItem], split: str) -> list[BundleItem]:
    """The images of one split; InvalidBundle where there are none."""
    chosen, others = [], set()
    for item in items:
        if item.split == split:
            chosen.append(item)
        else:
            others.add(item.split)
    if not chosen:
        splits = ", ".join(sorted(others)) or "none at all"
        raise InvalidBundle(f"expected a split named {split!r:.60}, found {splits}")
    return chosen


def index_images(items: Sequence[BundleItem]) -> dict[str, int]:
    """Name or id of an image -> its place in `items`."""
    places = {item.image: place for place, item in enumerate(items)}
    return places | {item.id: place for place, item in enumerate(items) if item.id is not None}


def read_features_header(path: Path) -> FeaturesHeader | None:
    """The header of the features; None where the bundle has none."""
    if FEATURES not in set(member_names(path)):
        return None
    with open_member(path, FEATURES) as stream:
        return parse_features_header(stream)


def write_bundle_folder(path: Path, items: Iterable[BundleItem]) -> None:
    """Write captions.jsonl, completely or not at all; raises where `read_items` would."""
    made = [each for each in (path, *path.parents) if not each.exists()]
    path.mkdir(parents=True, exist_ok=True)
    partial = path / (CAPTIONS + ".partial")
    try:
        with partial.open("wb") as stream:
            for _ in _items(_written(stream, items), NamesInMemory()):
                pass
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path / CAPTIONS)
    finally:
        partial.unlink(missing_ok=True)
        with suppress(OSError):  # they are not empty: it is written
            for folder in made:
                folder.rmdir()


def _written(stream: IO[bytes], items: Iterable[BundleItem]) -> Iterator[bytes]:
    for item in items:
        line = _line(item).encode("utf-8", "surrogatepass")
        stream.write(line)
        yield line


def member_names(path: Path) -> Iterator[str]:
    """The names of all files of the bundle; unsafe names and links are refused."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_symlink():
                raise InvalidBundle(f"{file.name!r:.200} is a link; expected plain files")
            if file.is_file():
                yield plain_tar.clean_member_name(file.relative_to(path).as_posix())
        return
    with open_tar(path) as archive:
        yield from plain_tar.read_tar_members(archive)


@contextmanager
def open_member(path: Path, name: str) -> Iterator[IO[bytes]]:
    """Open a file of the bundle, seekable; a name cannot lead outside the bundle."""
    if path.is_dir():
        with find_plain_file(path, plain_tar.clean_member_name(name)).open("rb") as stream:
            yield stream
        return
    with open_tar(path) as archive:
        member = plain_tar.read_tar_members(archive).get(name)
        if member is None:
            raise InvalidBundle(f"expected a file {name!r:.200} in the bundle, found none")
        with plain_tar.open_tar_member(archive, member) as stream:
            yield stream


def find_plain_file(folder: Path, name: str) -> Path:
    file = folder / name
    try:
        found = file.is_file() and file.resolve() == folder.resolve() / name
    except OSError:  # such as: the name is too long for the file system
        found = False
    if not found:
        raise InvalidBundle(f"expected a file {name!r:.200} in the bundle, found none")
    return file


def open_tar(path: Path) -> IO[bytes]:
    if not path.is_file():
        raise InvalidBundle(f"expected a bundle (a folder or a tar file), found nothing at {path}")
    found = foreign.of_path(path)
    if found is not None and found.is_text and path.name == CAPTIONS:
        raise InvalidBundle(
            "expected a dataset bundle: a tar or a folder with captions.jsonl, found the file "
            f"itself: name its folder, {path.parent}"
        )
    refusal = foreign.refusal(found, foreign.BUNDLE)
    if refusal is not None:
        raise InvalidBundle(refusal)
    return path.open("rb")


def _items(lines: Iterable[bytes], names: "NameRegistry") -> Iterator[BundleItem]:
    number = 0
    for number, line in enumerate(lines, start=1):
        if len(line) > limits.LINE_BYTES:
            raise InvalidBundle(f"line {number}: longer than {limits.LINE_BYTES} bytes")
        if number > limits.IMAGES:
            raise InvalidBundle(f"expected at most {limits.IMAGES} lines, found more")
        if not line.strip():
            raise InvalidBundle(f"line {number}: expected a JSON object, found an empty line")
        item = _item(number, line)
        names.add(number, item)
        yield item
    if number == 0:
        raise InvalidBundle(f"{CAPTIONS} is empty: expected a line for each image")


class NameRegistry(Protocol):
    """Registry of names and ids: none stands for two images, since an image is found by either."""

    def add(self, number: int, item: BundleItem) -> None: ...


class NamesInMemory:
    def __init__(self) -> None:
        self._lines: dict[str, int] = {}

    def add(self, number: int, item: BundleItem) -> None:
        self._claim(number, "image", item.image)
        if item.id is not None and item.id != item.image:
            self._claim(number, "id", item.id)

    def _claim(self, number: int, field: str, text: str) -> None:
        if text in self._lines:
            raise name_taken_error(number, field, text, self._lines[text])
        self._lines[text] = number


def name_taken_error(number: int, field: str, name: str, by: int) -> InvalidBundle:
    return InvalidBundle(
        f"line {number}, {field}: {name!r:.100} is taken by line {by}",
        pointer=f"/{number}/{field}",
    )


def _item(number: int, line: bytes) -> BundleItem:
    value = strict_json.parse_json_line(number, line, InvalidBundle)
    references = value.get("references")
    if not isinstance(references, list) or not references:
        raise _wrong_field(number, "references", "a list of at least one caption", value)
    for index, caption in enumerate(references):
        if not isinstance(caption, str) or len(caption) > limits.CAPTION:
            expected = f"a text of at most {limits.CAPTION} characters"
            raise wrong_field_error(number, f"references/{index}", expected, caption)
    return BundleItem(
        image=_name(number, "image", value),
        split=_name(number, "split", value),
        references=tuple(references),
        id=_id(number, value),
    )


def _name(number: int, field: str, item: Mapping[str, Any]) -> str:
    value = item.get(field)
    if not isinstance(value, str) or not 0 < len(value) <= limits.IMAGE:
        expected = f"a text of 1 to {limits.IMAGE} characters"
        raise _wrong_field(number, field, expected, item)
    if not value.isprintable():
        raise wrong_field_error(number, field, "a name of printable characters", value)
    return value


def _id(number: int, item: Mapping[str, Any]) -> str | None:
    value = item.get("id")
    if value is None:
        return None
    if type(value) is int:
        return str(value)
    if not isinstance(value, str):
        raise wrong_field_error(
            number, "id", "a text or a whole number of at most 18 digits", value
        )
    return _name(number, "id", item)


def wrong_field_error(
    number: int, field: str, expected: str, found: Any, advice: str = ""
) -> InvalidBundle:
    shown = "none" if found is None else repr(found)
    if isinstance(found, str) and len(found) > 60:
        shown = f"{len(found)} characters"
    return InvalidBundle(
        f"line {number}, {field}: expected {expected}, found {shown:.100}{advice}",
        pointer=f"/{number}/{field}",
    )


def _wrong_field(number: int, field: str, expected: str, item: Mapping[str, Any]) -> InvalidBundle:
    """Refusal of a wrong field, with the name that it has in other formats, if it is there."""
    other = next((name for name in _CALLED.get(field, ()) if name in item), None)
    other = other or next(
        (name for name in _unknown(item) if wording.suggest_names(name, [field])), None
    )
    found = item.get(field)
    if found is not None:
        return wrong_field_error(number, field, expected, found)
    renamed = f", but {other!r:.60}: name it {field!r}" if other else ""
    return wrong_field_error(
        number, field, expected, None, f"{renamed}; a line is {foreign.BUNDLE_LINE}"
    )


def _unknown(item: Mapping[str, Any]) -> Iterator[str]:
    """The first names that no line has."""
    return islice((name for name in item if name not in _FIELDS), _MOST_NAMES)


def _line(item: BundleItem) -> str:
    fields: dict[str, object] = {"image": item.image}
    if item.id is not None:
        fields["id"] = int(item.id) if _NUMBER.fullmatch(item.id) else item.id
    fields |= {"split": item.split, "references": list(item.references)}
    return json.dumps(fields, ensure_ascii=False) + "\n"
