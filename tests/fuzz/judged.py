"""Files that somebody sends, asked of what the service's judges ask: never another error than a
refusal, the same answer again, and the same content as an independent reader finds.
"""

import io
import json
import math
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import safetensors

from fuzz import refusals
from fuzz.bounds import lying
from prescore import foreign
from service.contract.errors import RequestRefused
from service.contract.formats import (
    bundles,
    checkpoint_header,
    columns_header,
    model_formats,
    packages,
    safetensors_header,
)
from service.contract.formats.bundles import plain_tar
from service.stored import judge_process, judges


def checkpoint(data: bytes) -> None:
    """A model of one file or of several."""
    with lying(data) as path:
        found = _asked("checkpoint", path, bytes=len(data))
        _check_early(
            "checkpoint", path, data, model_formats.count_model_header_bytes(data[:512]), found
        )
        if "facts" not in found:
            return
        format = found["facts"].get("format", "canonical")  # noqa: A001  the contract's name
        if format in ("canonical", "plugin"):
            _check_official(data)
        else:
            _check_package(path)
        if format == "canonical":
            _check_written_again(data)


def columns(data: bytes) -> None:
    """Columns that somebody brings: the header, then all values."""
    with lying(data) as path:
        found = _asked("columns header", path, bytes=len(data))
        whole = _asked("columns", path)
        _check_early(
            "columns header", path, data, columns_header.count_columns_header_bytes(data[:8]), found
        )
        if "facts" in whole:
            assert found == whole
            _check_official(data)


def dataset(data: bytes) -> None:
    """A bundle, and captions alone."""
    with lying(data) as path, lying(b"") as beside:
        images = beside.with_name("images")
        found = _asked("dataset", path, images=str(images))
        content = _asked("content", path, captions=None)
        stored = _asked("images", path, images=str(images))
        images.unlink(missing_ok=True)
        _check_tar(data)
        if "facts" not in found:
            return
        assert "facts" in content
        assert "facts" in stored
        assert "facts" in _asked("beginning", path)
        _check_items(data, path, found["facts"]["splits"], beside.parent)


def told(data: bytes) -> None:
    """Of any bytes, what they are said to be."""
    stream = io.BytesIO(data)
    found = foreign.of_file(stream, len(data))
    assert found is None or (found.what and found.do)
    for wanted in (foreign.CHECKPOINT, foreign.BUNDLE, foreign.CAPTIONS, foreign.STATE_DICT):
        said = foreign.refusal(found, wanted)
        if said is not None:
            refusals.check(said, None)


def _asked(question: str, path: Path, **asked: object) -> dict[str, Any]:
    """The answer, which is the same the second time and can be written as JSON."""
    first = judge_process.answer_question({"question": question, "path": str(path), **asked})
    refusals.check_told(first)
    assert json.loads(json.dumps(first, allow_nan=False)) == json.loads(json.dumps(first))
    assert (
        judge_process.answer_question({"question": question, "path": str(path), **asked}) == first
    )
    return first


def _check_early(
    question: str, path: Path, data: bytes, needed: int, whole: Mapping[str, Any]
) -> None:
    """What is said of a beginning is not taken back: no right file is refused by it."""
    assert needed <= 8 + columns_header.MAX_HEADER_BYTES
    for length in (len(data), None):
        path.write_bytes(data[: max(needed, 1)])
        early = judge_process.answer_question(
            {"question": question, "path": str(path), "bytes": length}
        )
        refusals.check_told(early)
        path.write_bytes(data)
        if "facts" in whole and len(data) >= needed:
            assert early.get("facts") in (whole["facts"], judges.NOT_YET), early


def _check_official(data: bytes) -> None:
    """The official library sees the same tensors."""
    header = safetensors_header.read_safetensors_header(io.BytesIO(data), len(data), 10**8, 10**7)
    theirs = dict(safetensors.deserialize(data))
    assert theirs.keys() == header.tensors.keys()
    for name, tensor in header.tensors.items():
        assert tuple(theirs[name]["shape"]) == tensor.shape
        place = slice(header.data_start + tensor.start, header.data_start + tensor.end)
        assert bytes(theirs[name]["data"]) == data[place]


def _check_written_again(data: bytes) -> None:
    """What was read of a canonical checkpoint, written, is read as the same."""
    found = checkpoint_header.parse_checkpoint_header(io.BytesIO(data), len(data))
    header: dict[str, Any] = {
        name: {"dtype": each.dtype, "shape": each.shape, "data_offsets": [each.start, each.end]}
        for name, each in found.tensors.items()
    }
    header["__metadata__"] = checkpoint_header.dump_checkpoint_metadata(found.description)
    text = json.dumps(header).encode()
    again = len(text).to_bytes(8, "little") + text + data[found.data_start :]
    assert (
        checkpoint_header.parse_checkpoint_header(io.BytesIO(again), math.inf).description
        == found.description
    )


def _check_package(path: Path) -> None:
    """Where a file is said to lie in a package, its bytes lie."""
    with packages.open_package(path) as package:
        for name, inside in package.files.items():
            with suppress(RequestRefused):
                whole = package.read(name, 1 << 24)
                if inside.place is not None:
                    start = inside.place.start
                    there = path.read_bytes()[start : start + inside.place.size]
                    assert there == whole, f"{name} lies somewhere else"
    data = path.read_bytes()
    if not data.startswith(b"PK"):
        _check_tar(data)


def _check_tar(data: bytes) -> None:
    """What we take for the files of a tar, Python's reader does."""
    found = refusals.refused_or(lambda: plain_tar.read_tar_members(io.BytesIO(data), 1000))
    if isinstance(found, RequestRefused):
        return
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:", errorlevel=2) as archive:
        theirs = {
            plain_tar.clean_member_name(each.name): (each.offset_data, each.size)
            for each in archive.getmembers()
            if each.isreg()
        }
    ours = {name: (each.start, each.size) for name, each in found.items()}
    assert ours == theirs


def _check_items(data: bytes, path: Path, splits: Mapping[str, Any], folder: Path) -> None:
    """Lines, by json alone, and a folder that is written of them."""
    items = list(bundles.read_items(path))
    with bundles.open_member(path, bundles.CAPTIONS) as stream:
        # Not `splitlines`: a CR is a blank of JSON, too.
        lines = [json.loads(line) for line in stream.read().removesuffix(b"\n").split(b"\n")]
    assert [(each.image, list(each.references)) for each in items] == [
        (line["image"], line["references"]) for line in lines
    ]
    assert sum(each["images"] for each in splits.values()) == len(items)
    made = folder / "again"
    bundles.write_bundle_folder(made, items)
    try:
        assert list(bundles.read_items(made)) == items
    finally:
        (made / bundles.CAPTIONS).unlink()
        made.rmdir()
