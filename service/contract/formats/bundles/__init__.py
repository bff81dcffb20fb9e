"""Dataset bundles: a tar or a folder with captions.jsonl, perhaps features and images.

Read as a stream, one line at a time, without numpy; errors name line and field. A bundle may be an
attack: tar members are never extracted, and lengths are limited before they are read.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from pydantic import ValidationError

from service.contract import limits
from service.contract.errors import InvalidBundle, InvalidCheckpoint
from service.contract.formats import safetensors_header, strict_json
from service.contract.formats.bundles import plain_tar
from service.contract.formats.checkpoint_header import Encoder

CAPTIONS = "captions.jsonl"
FEATURES = "features.safetensors"
MAX_LINE_BYTES = 1_000_000
_CHUNK = 1 << 18
MAX_IMAGES = 2_000_000
MAX_ENCODER_CHARACTERS = 10_000
MAX_FEATURES_HEADER_BYTES = 64_000_000  # a million image names

_NUMBER = re.compile("0|[1-9][0-9]{0,17}")  # an id that JSON readers write as the same text


@dataclass(frozen=True)
class Item:
    """One image and its references."""

    image: str
    split: str
    references: tuple[str, ...]
    id: str | None = None  # as text, whatever the file had


@dataclass(frozen=True)
class FeaturesHeader:
    ids: tuple[str, ...]  # image names in row order
    size: int
    dtype: str
    encoder: Encoder
    data_start: int  # the tensor's first byte in the file


def read_items(path: Path) -> Iterator[Item]:
    """The bundle's images in the file's order; raises InvalidBundle at the first wrong line."""
    with open_member(path, CAPTIONS) as stream:
        yield from _items(iter(lambda: stream.readline(MAX_LINE_BYTES + 1), b""))


def captions_of(path: Path) -> Iterator[bytes]:
    """The bytes of captions.jsonl in chunks."""
    with open_member(path, CAPTIONS) as stream:
        while chunk := stream.read(_CHUNK):
            yield chunk


def count_splits(path: Path) -> dict[str, dict[str, int]]:
    """The numbers of images and references by split; reads, and so checks, every line."""
    splits: dict[str, dict[str, int]] = {}
    for item in read_items(path):
        counts = splits.setdefault(item.split, {"images": 0, "references": 0})
        counts["images"] += 1
        counts["references"] += len(item.references)
    return splits


def read_split(path: Path, split: str) -> list[Item]:
    """All images of one split; InvalidBundle names the splits that exist if there are none."""
    items = list(read_items(path))
    chosen = [item for item in items if item.split == split]
    if not chosen:
        splits = ", ".join(sorted({item.split for item in items})) or "none at all"
        raise InvalidBundle(f"expected a split named {split!r:.60}, found {splits}")
    return chosen


def places_of(items: Sequence[Item]) -> dict[str, int]:
    """Name or id of an image -> its place in `items`."""
    places = {item.image: place for place, item in enumerate(items)}
    return places | {item.id: place for place, item in enumerate(items) if item.id is not None}


def read_features_header(path: Path) -> FeaturesHeader | None:
    """The header of the features; None where the bundle has none."""
    if FEATURES not in set(member_names(path)):
        return None
    with open_member(path, FEATURES) as stream:
        return _features_header(stream, _length(stream))


def write_folder(path: Path, items: Iterable[Item]) -> None:
    """Write captions.jsonl, completely or not at all; raises where `read_items` would."""
    path.mkdir(parents=True, exist_ok=True)
    partial = path / (CAPTIONS + ".partial")
    try:
        with partial.open("wb") as stream:
            for _ in _items(_written(stream, items)):
                pass
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path / CAPTIONS)
    finally:
        partial.unlink(missing_ok=True)


def _written(stream: IO[bytes], items: Iterable[Item]) -> Iterator[bytes]:
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
                yield plain_tar.plain_name(file.relative_to(path).as_posix())
        return
    with _tar(path) as archive:
        yield from plain_tar.members(archive)


@contextmanager
def open_member(path: Path, name: str) -> Iterator[IO[bytes]]:
    """Open a file of the bundle, seekable; a name cannot lead outside the bundle."""
    if path.is_dir():
        with _plain_file(path, plain_tar.plain_name(name)).open("rb") as stream:
            yield stream
        return
    with _tar(path) as archive:
        member = plain_tar.members(archive).get(name)
        if member is None:
            raise InvalidBundle(f"expected a file {name!r:.200} in the bundle, found none")
        with plain_tar.open_member(archive, member) as stream:
            yield stream


def _plain_file(folder: Path, name: str) -> Path:
    file = folder / name
    try:
        found = file.is_file() and file.resolve() == folder.resolve() / name
    except OSError:  # such as: the name is too long for the file system
        found = False
    if not found:
        raise InvalidBundle(f"expected a file {name!r:.200} in the bundle, found none")
    return file


def _tar(path: Path) -> IO[bytes]:
    if not path.is_file():
        raise InvalidBundle(f"expected a bundle (a folder or a tar file), found nothing at {path}")
    return path.open("rb")


def _items(lines: Iterable[bytes]) -> Iterator[Item]:
    known = _Names()
    number = 0
    for number, line in enumerate(lines, start=1):
        if len(line) > MAX_LINE_BYTES:
            raise InvalidBundle(f"line {number}: longer than {MAX_LINE_BYTES} bytes")
        if number > MAX_IMAGES:
            raise InvalidBundle(f"more than {MAX_IMAGES} lines")
        if not line.strip():
            raise InvalidBundle(f"line {number}: expected a JSON object, found an empty line")
        item = _item(number, line)
        known.add(number, item)
        yield item
    if number == 0:
        raise InvalidBundle(f"{CAPTIONS} is empty: expected a line for each image")


class _Names:
    """Checks that no name or id stands for two images, since an image is found by either."""

    def __init__(self) -> None:
        self._lines: dict[str, int] = {}

    def add(self, number: int, item: Item) -> None:
        self._claim(number, "image", item.image)
        if item.id is not None and item.id != item.image:
            self._claim(number, "id", item.id)

    def _claim(self, number: int, field: str, text: str) -> None:
        if text in self._lines:
            raise InvalidBundle(
                f"line {number}, {field}: {text!r:.100} is taken by line {self._lines[text]}",
                pointer=f"/{number}/{field}",
            )
        self._lines[text] = number


def _item(number: int, line: bytes) -> Item:
    value = strict_json.line_object(number, line, InvalidBundle)
    references = value.get("references")
    if not isinstance(references, list) or not references:
        raise _wrong(number, "references", "a list of at least one caption", references)
    for index, caption in enumerate(references):
        if not isinstance(caption, str) or len(caption) > limits.CAPTION:
            expected = f"a text of at most {limits.CAPTION} characters"
            raise _wrong(number, f"references/{index}", expected, caption)
    return Item(
        image=_name(number, "image", value.get("image")),
        split=_name(number, "split", value.get("split")),
        references=tuple(references),
        id=_id(number, value.get("id")),
    )


def _name(number: int, field: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= limits.IMAGE:
        expected = f"a text of 1 to {limits.IMAGE} characters"
        raise _wrong(number, field, expected, value)
    if not value.isprintable():
        raise _wrong(number, field, "a name of printable characters", value)
    return value


def _id(number: int, value: Any) -> str | None:
    if value is None:
        return None
    if type(value) is int:
        return str(value)
    if not isinstance(value, str):
        raise _wrong(number, "id", "a text or a whole number of at most 18 digits", value)
    return _name(number, "id", value)


def _wrong(number: int, field: str, expected: str, found: Any) -> InvalidBundle:
    shown = (
        f"{len(found)} characters" if isinstance(found, str) and len(found) > 60 else repr(found)
    )
    return InvalidBundle(
        f"line {number}, {field}: expected {expected}, found {shown:.100}",
        pointer=f"/{number}/{field}",
    )


def _line(item: Item) -> str:
    fields: dict[str, object] = {"image": item.image}
    if item.id is not None:
        fields["id"] = int(item.id) if _NUMBER.fullmatch(item.id) else item.id
    fields |= {"split": item.split, "references": list(item.references)}
    return json.dumps(fields, ensure_ascii=False) + "\n"


def _length(stream: IO[bytes]) -> int:
    end = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    return end


def _features_header(stream: IO[bytes], file_bytes: int) -> FeaturesHeader:
    try:
        header = safetensors_header.read(stream, file_bytes, MAX_FEATURES_HEADER_BYTES)
        ids = _feature_ids(header.metadata)
    except InvalidCheckpoint as error:
        raise InvalidBundle(f"{FEATURES}: {error.detail}") from None
    shape = {name: tensor.shape for name, tensor in header.tensors.items()}
    tensor = header.tensors.get("features")
    if len(shape) != 1 or tensor is None or len(tensor.shape) != 2 or 0 in tensor.shape:
        raise InvalidBundle(
            f"{FEATURES}: expected one tensor `features` (N, D), found {shape!s:.100}"
        )
    if tensor.dtype not in ("F16", "F32"):
        raise InvalidBundle(f"{FEATURES}: expected F16 or F32, found {tensor.dtype}")
    if len(ids) != tensor.shape[0]:
        raise InvalidBundle(
            f"{FEATURES}: {tensor.shape[0]} rows, but `ids` names {len(ids)} images"
        )
    return FeaturesHeader(
        ids, tensor.shape[1], tensor.dtype, _encoder(header.metadata), header.data_start
    )


def _feature_ids(metadata: dict[str, str]) -> tuple[str, ...]:
    text = _metadata(metadata, "ids")
    try:
        ids = safetensors_header.string_list(text, MAX_IMAGES)
    except strict_json.NotJson as error:
        raise InvalidBundle(f"{FEATURES}, ids{error.where}: {error}") from None
    if len(set(ids)) < len(ids):
        twice = next(name for name, times in Counter(ids).items() if times > 1)
        raise InvalidBundle(f"{FEATURES}: `ids` names an image twice: {twice!r:.100}")
    return tuple(ids)


def _encoder(metadata: dict[str, str]) -> Encoder:
    text = _metadata(metadata, "encoder")
    with suppress(strict_json.NotJson, ValidationError):
        if len(text) <= MAX_ENCODER_CHARACTERS:
            return Encoder.model_validate(strict_json.parse(text))
    raise InvalidBundle(
        f'{FEATURES}: `encoder` must be {{"name": "…", "digest": "…"}}, found {text!r:.100}'
    )


def _metadata(metadata: dict[str, str], name: str) -> str:
    if name not in metadata:
        raise InvalidBundle(f"{FEATURES}: metadata `{name}` is missing")
    return metadata[name]
