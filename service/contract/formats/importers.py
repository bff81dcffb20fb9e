"""Reads published datasets as bundle items: Flickr8k, Karpathy's files, COCO."""

import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from prescore import foreign
from service.contract.errors import InvalidBundle
from service.contract.formats import strict_json
from service.contract.formats.bundles import BundleItem

_TOKEN_LINE = re.compile(r"([^\t#]+)#(\d+)\t(.*)")


def read_flickr8k(tokens: Path, splits: Mapping[str, Path]) -> Iterator[BundleItem]:
    """`Flickr8k.token.txt` (image#n TAB caption) and a list of image names for each split."""
    captions = _token_file(tokens)
    for split, listing in splits.items():
        for number, image in enumerate(_lines(listing), start=1):
            if image not in captions:
                raise InvalidBundle(
                    f"{listing.name}, line {number}: {image!r:.100} has no caption in {tokens.name}"
                )
            yield BundleItem(image, split, tuple(captions[image]))


def read_karpathy(path: Path) -> Iterator[BundleItem]:
    """Karpathy's dataset_*.json; the split `restval` is kept as it is."""
    for index, image in enumerate(_list(_json(path), "images", path.name)):
        where = f"{path.name}, images[{index}]"
        sentences = _list(image, "sentences", where)
        if not sentences:
            raise InvalidBundle(f"{where}: expected at least one of 'sentences', found none")
        yield BundleItem(
            image=_text(image, "filename", where),
            split=_text(image, "split", where),
            references=tuple(
                _text(sentence, "raw", f"{where}, sentences[{number}]")
                for number, sentence in enumerate(sentences)
            ),
            id=_identity(image, "cocoid", where) if "cocoid" in image else None,
        )


def read_coco(path: Path, split: str) -> Iterator[BundleItem]:
    """COCO's captions_*.json: images and annotations apart, joined by image_id."""
    document = _json(path)
    captions: dict[str, list[str]] = defaultdict(list)
    for index, annotation in enumerate(_list(document, "annotations", path.name)):
        where = f"{path.name}, annotations[{index}]"
        identity = _identity(annotation, "image_id", where)
        captions[identity].append(_text(annotation, "caption", where))
    for index, image in enumerate(_list(document, "images", path.name)):
        where = f"{path.name}, images[{index}]"
        identity = _identity(image, "id", where)
        if identity not in captions:
            raise InvalidBundle(f"{where}: no annotation has image_id {identity!r:.60}")
        yield BundleItem(
            _text(image, "file_name", where), split, tuple(captions[identity]), identity
        )


def _token_file(path: Path) -> dict[str, list[str]]:
    captions: dict[str, list[str]] = defaultdict(list)
    for number, line in enumerate(_lines(path), start=1):
        match = _TOKEN_LINE.fullmatch(line)
        if match is None:
            raise InvalidBundle(
                f"{path.name}, line {number}: expected `image#number TAB caption`, "
                f"found {line!r:.100}"
            )
        captions[match[1]].append(match[3])
    return captions


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    if path.suffix != ".gz":
        found = foreign.of_path(path)
        if found is not None and not found.is_text:
            expected = "expected the file as it was published (JSON, or a list of lines)"
            raise InvalidBundle(f"{path.name}: {expected}, found {found.what}: {found.do}")
        with path.open("rb") as stream:
            yield stream
        return
    try:
        with gzip.open(path, "rb") as unpacked:
            yield unpacked  # type: ignore[misc]  # its type is not IO[bytes]
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise InvalidBundle(f"{path.name}: expected a whole gzip file, found {error}") from None


def _lines(path: Path) -> Iterator[str]:
    """Lines, split only at line feeds: a caption may contain other line separators."""
    with _open(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                yield line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError:
                raise InvalidBundle(f"{path.name}, line {number}: not UTF-8") from None


def _json(path: Path) -> Any:
    with _open(path) as stream:
        raw = stream.read()
    try:
        return strict_json.parse_json(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidBundle(f"{path.name}: not UTF-8 (byte {error.start})") from None
    except strict_json.NotJson as error:
        raise InvalidBundle(f"{path.name}{error.where}: {error}", pointer=error.where) from None


def _field(value: Any, name: str, where: str) -> Any:
    if not isinstance(value, dict) or name not in value:
        raise InvalidBundle(f"{where}: expected a field {name!r}, found {value!r:.80}")
    return value[name]


def _list(value: Any, name: str, where: str) -> list[Any]:
    found = _field(value, name, where)
    if not isinstance(found, list):
        raise InvalidBundle(f"{where}: expected {name!r} to be a list, found {found!r:.80}")
    return found


def _text(value: Any, name: str, where: str) -> str:
    found = _field(value, name, where)
    if not isinstance(found, str):
        raise InvalidBundle(f"{where}: expected {name!r} to be a text, found {found!r:.80}")
    return found


def _identity(value: Any, name: str, where: str) -> str:
    found = _field(value, name, where)
    if type(found) is not int and not isinstance(found, str):
        raise InvalidBundle(
            f"{where}: expected {name!r} to be a whole number or a text, found {found!r:.80}"
        )
    return str(found)
