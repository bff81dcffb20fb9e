"""Dataset bundles: a tar or a folder with captions.jsonl, perhaps features and images.

Read as a stream, one line at a time, without numpy; what is wrong is said with line and field.
Bytes are hostile: tar members are never extracted, lengths are capped before they are read.
"""

import json
import os
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from pydantic import ValidationError

from service.contract import safetensors_header, strict_json
from service.contract.checkpoint_header import Encoder
from service.contract.errors import InvalidBundle, InvalidCheckpoint

CAPTIONS = "captions.jsonl"
FEATURES = "features.safetensors"
IMAGES = "images/"
_TAR_ERRORS = (tarfile.TarError, OSError, ValueError, OverflowError)  # what broken headers raise
MAX_LINE_BYTES = 1_000_000
MAX_CAPTION_CHARACTERS = 10_000
MAX_NAME_CHARACTERS = 500
MAX_IMAGES = 2_000_000
MAX_FEATURES_HEADER_BYTES = 64_000_000  # a million image names


@dataclass(frozen=True)
class Item:
    """One image and what people said of it."""

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
        yield from _items(stream)


def read_split(path: Path, split: str) -> list[Item]:
    """All images of one split; an empty answer is an error that names the splits there are."""
    items = list(read_items(path))
    chosen = [item for item in items if item.split == split]
    if not chosen:
        splits = ", ".join(sorted({item.split for item in items})) or "none at all"
        raise InvalidBundle(f"expected a split named {split!r:.60}, found {splits}")
    return chosen


def read_features_header(path: Path) -> FeaturesHeader | None:
    """None where the bundle has captions alone."""
    if FEATURES not in set(member_names(path)):
        return None
    with open_member(path, FEATURES) as stream:
        return _features_header(stream, _length(stream))


def write_folder(path: Path, items: Iterable[Item]) -> None:
    """captions.jsonl in a folder, whole or not at all."""
    path.mkdir(parents=True, exist_ok=True)
    partial = path / (CAPTIONS + ".partial")
    with partial.open("w", encoding="utf-8", newline="\n") as stream:
        for item in items:
            stream.write(_line(item) + "\n")
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(path / CAPTIONS)


def member_names(path: Path) -> Iterator[str]:
    """Every file of the bundle; unsafe names and links are refused, never followed."""
    if path.is_dir():
        for file in sorted(path.rglob("*")):
            if file.is_symlink():
                raise InvalidBundle(f"{file.name!r:.200} is a link; expected plain files")
            if file.is_file():
                yield file.relative_to(path).as_posix()
        return
    with _tar(path) as archive:
        yield from _tar_members(archive)


@contextmanager
def open_member(path: Path, name: str) -> Iterator[IO[bytes]]:
    if path.is_dir():
        file = path / name
        if not file.is_file() or file.is_symlink():
            raise InvalidBundle(f"expected a file {name} in the bundle, found none")
        with file.open("rb") as stream:
            yield stream
        return
    with _tar(path) as archive:
        member = _tar_members(archive).get(name)
        if member is None:
            raise InvalidBundle(f"expected a file {name} in the bundle, found none")
        stream_in_tar = archive.extractfile(member)
        assert stream_in_tar is not None  # a regular file: _tar_members has seen to that
        with stream_in_tar as stream:
            yield stream


def _tar(path: Path) -> tarfile.TarFile:
    if not path.is_file():
        raise InvalidBundle(f"expected a bundle (a folder or a tar file), found nothing at {path}")
    try:
        return tarfile.open(path, "r:")
    except _TAR_ERRORS as error:
        raise InvalidBundle(f"expected an uncompressed tar or a folder: {error}") from None


def _tar_members(archive: tarfile.TarFile) -> dict[str, tarfile.TarInfo]:
    members: dict[str, tarfile.TarInfo] = {}
    try:
        for member in archive:
            if not member.isdir():
                _add_member(members, member)
    except _TAR_ERRORS as error:
        raise InvalidBundle(f"the tar cannot be read: {error}") from None
    return members


def _add_member(members: dict[str, tarfile.TarInfo], member: tarfile.TarInfo) -> None:
    name = _plain_name(member.name)
    if not member.isreg() or member.issparse():
        raise InvalidBundle(f"{name!r:.200} is a link, a device or sparse; expected plain files")
    if name in members:
        raise InvalidBundle(f"{name!r:.200} is in the bundle twice")
    members[name] = member


def _plain_name(name: str) -> str:
    """`./captions.jsonl` is `captions.jsonl`; whatever could leave the folder is refused."""
    parts = PurePosixPath(name)
    if parts.is_absolute() or ".." in parts.parts or "\0" in name or "\\" in name:
        raise InvalidBundle(f"{name!r:.200} is not a name inside the bundle")
    return parts.as_posix()


def _items(stream: IO[bytes]) -> Iterator[Item]:
    known = _Names()
    number = 0
    while line := stream.readline(MAX_LINE_BYTES + 1):
        number += 1
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
    """An image is found by its name or its id as text, so no text may stand for two images."""

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
    try:
        value = strict_json.parse(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidBundle(f"line {number}: not UTF-8 (byte {error.start})") from None
    except strict_json.NotJson as error:
        raise InvalidBundle(f"line {number}: {error}") from None
    if not isinstance(value, dict):
        raise InvalidBundle(f"line {number}: expected a JSON object, found {value!r:.60}")
    references = value.get("references")
    if not isinstance(references, list) or not references:
        raise _wrong(number, "references", "a list of at least one caption", references)
    for index, caption in enumerate(references):
        if not isinstance(caption, str) or len(caption) > MAX_CAPTION_CHARACTERS:
            expected = f"a text of at most {MAX_CAPTION_CHARACTERS} characters"
            raise _wrong(number, f"references/{index}", expected, caption)
    return Item(
        image=_name(number, "image", value.get("image")),
        split=_name(number, "split", value.get("split")),
        references=tuple(references),
        id=_id(number, value.get("id")),
    )


def _name(number: int, field: str, value: Any) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME_CHARACTERS:
        expected = f"a text of 1 to {MAX_NAME_CHARACTERS} characters"
        raise _wrong(number, field, expected, value)
    if not value.isprintable():
        raise _wrong(number, field, "a name of printable characters", value)
    return value


def _id(number: int, value: Any) -> str | None:
    if value is None:
        return None
    if type(value) is int:
        return str(value)
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
        fields["id"] = int(item.id) if item.id.isdecimal() and item.id.isascii() else item.id
    fields |= {"split": item.split, "references": list(item.references)}
    return json.dumps(fields, ensure_ascii=False)


def _length(stream: IO[bytes]) -> int:
    end = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    return end


def _features_header(stream: IO[bytes], file_bytes: int) -> FeaturesHeader:
    try:
        header = safetensors_header.read(stream, file_bytes, MAX_FEATURES_HEADER_BYTES)
    except InvalidCheckpoint as error:
        raise InvalidBundle(f"{FEATURES}: {error.detail}") from None
    tensor = header.tensors.get("features")
    if list(header.tensors) != ["features"] or tensor is None or len(tensor.shape) != 2:
        raise InvalidBundle(f"{FEATURES}: expected one tensor `features` (N, D)")
    if tensor.dtype not in ("F16", "F32"):
        raise InvalidBundle(f"{FEATURES}: expected F16 or F32, found {tensor.dtype}")
    ids = _feature_ids(header.metadata)
    if len(ids) != tensor.shape[0]:
        raise InvalidBundle(
            f"{FEATURES}: {tensor.shape[0]} rows, but `ids` names {len(ids)} images"
        )
    return FeaturesHeader(
        ids, tensor.shape[1], tensor.dtype, _encoder(header.metadata), header.data_start
    )


def _feature_ids(metadata: dict[str, str]) -> tuple[str, ...]:
    ids = _metadata_json(metadata, "ids")
    if not isinstance(ids, list) or not all(isinstance(name, str) for name in ids):
        raise InvalidBundle(f"{FEATURES}: `ids` must be a JSON list of image names")
    if len(set(ids)) < len(ids):
        raise InvalidBundle(f"{FEATURES}: `ids` names an image twice")
    return tuple(ids)


def _encoder(metadata: dict[str, str]) -> Encoder:
    try:
        return Encoder.model_validate(_metadata_json(metadata, "encoder"))
    except ValidationError:
        raise InvalidBundle(
            f'{FEATURES}: `encoder` must be {{"name": "…", "digest": "…"}}'
        ) from None


def _metadata_json(metadata: dict[str, str], name: str) -> Any:
    if name not in metadata:
        raise InvalidBundle(f"{FEATURES}: metadata `{name}` is missing")
    try:
        return strict_json.parse(metadata[name])
    except strict_json.NotJson as error:
        raise InvalidBundle(f"{FEATURES}, {name}: {error}") from None
