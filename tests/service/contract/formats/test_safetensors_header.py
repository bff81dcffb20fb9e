"""The header of a safetensors file: each way of being wrong has its error and its message."""

import io
import json

import pytest

from helpers import contract_files
from helpers.contract_files import ITEM_BYTES, entry, safetensors_file
from service.contract import errors
from service.contract.formats import safetensors_header


def read(content, file_bytes=None, **options):
    size = len(content) if file_bytes is None else file_bytes
    return safetensors_header.read_safetensors_header(io.BytesIO(content), size, **options)


def refused(content, error, *words, file_bytes=None):
    contract_files.refused(lambda: read(content, file_bytes), error, *words)


@pytest.mark.parametrize(("dtype", "size"), ITEM_BYTES.items())
def test_every_dtype_has_its_size(dtype, size):
    content = safetensors_file({"t": entry(dtype, [3], 0, 3 * size)}, bytes(3 * size))
    assert read(content).tensors["t"].dtype == dtype
    content = safetensors_file({"t": entry(dtype, [3], 0, 3 * size - 1)}, bytes(3 * size - 1))
    refused(content, errors.TensorLayout, f"shape [3] of {dtype} takes {3 * size} bytes")


def test_tensors_may_stand_in_any_order_and_the_header_may_be_padded():
    header = {"b": entry("F16", [1], 4, 6), "a": entry("F32", [1], 0, 4)}
    found = read(safetensors_file(json.dumps(header).encode() + b" " * 9, bytes(6)))
    assert set(found.tensors) == {"a", "b"}
    assert found.metadata == {}


def test_only_the_header_is_read_from_the_stream():
    stream = io.BytesIO(safetensors_file({}) + b"behind it")
    with pytest.raises(errors.TensorLayout):
        safetensors_header.read_safetensors_header(stream, len(stream.getvalue()))
    assert stream.read() == b"behind it"


@pytest.mark.parametrize("size", [0, 7])
def test_a_file_shorter_than_a_length_is_truncated(size):
    refused(bytes(size), errors.HeaderTruncated, "expected", f"found {size} bytes")


@pytest.mark.parametrize(
    ("length", "error", "words"),
    [
        (0, errors.HeaderMalformed, ("begin with '{'",)),
        (7, errors.HeaderMalformed, ("expected JSON", "closing quote")),
        (3, errors.HeaderTruncated, ("claims 3 bytes", "the file has 10 in all")),
        (4_000_001, errors.HeaderTooLarge, ("claims 4000001", "at most 4000000")),
        (2**40, errors.HeaderTooLarge, (f"claims {2**40}", "is this a safetensors file?")),
    ],
)
def test_a_header_length_that_is_not_true_is_refused(length, error, words):
    text = b'{"a":{"dtype":' if length == 7 else b"{}"
    refused(safetensors_file(text, length=length), error, *words)


def test_a_stream_that_ends_before_the_file_should_is_truncated():
    content = safetensors_file({"a": entry("F32", [1], 0, 4)}, bytes(4))
    refused(content[:30], errors.HeaderTruncated, "could be read", file_bytes=len(content))


@pytest.mark.parametrize(
    ("raw", "error", "words"),
    [
        (b" {}", errors.HeaderMalformed, ("begin with '{'",)),
        (b"{}x", errors.HeaderMalformed, ("expected JSON", "column 3")),
        (b'{"\xff": 1}', errors.HeaderMalformed, ("not UTF-8", "byte 2")),
        (b'{"a": ' + b"[" * 9000 + b"]" * 9000 + b"}", errors.HeaderMalformed, ("too deep",)),
        (b'{"a": ' + b"[" * 30_000, errors.HeaderTooLarge, ("30003 characters", "at most 20000")),
        (b"{" + b" " * 30_000 + b"}", errors.HeaderTooLarge, ("30002 characters",)),
        (b"{" + b'"' * 80_000 + b"}", errors.HeaderTooLarge, ("40000 strings",)),
        (b'{"__metadata__":{},"__metadata__":{}}', errors.HeaderMalformed, ("'__metadata__' 2",)),
        (b'{"__metadata__":null}', errors.HeaderMalformed, ("an object", "found None")),
        (b'{"__metadata__":{"n":1}}', errors.HeaderMalformed, ("'n'", "expected text, found 1")),
        (b'{"__metadata__":{"n":["x"]}}', errors.HeaderMalformed, ("expected text, found ['x']",)),
    ],
)
def test_a_header_that_is_not_the_json_it_must_be_is_refused(raw, error, words):
    refused(safetensors_file(raw), error, *words)


def test_a_header_of_the_most_structure_that_is_accepted_is_read():
    assert read(safetensors_file(b"{" + b"\t" * 19_998 + b"}")).tensors == {}
    content = safetensors_file(b"{" + b"\t" * 19_999 + b"}")
    refused(content, errors.HeaderTooLarge, "20001 characters", "at most 20000")


def one(**fields):
    whole = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4], **fields}
    return {"t": {key: value for key, value in whole.items() if value != "absent"}}


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"t": 1}, ("expected exactly dtype, shape and data_offsets", "found 1")),
        (one(data_offsets="absent"), ("expected exactly dtype",)),
        (one(extra=1), ("expected exactly dtype", "extra")),
        *((one(dtype=odd), ("expected a dtype of F64, F32", f"found {odd!r}")) for odd in (
            "f32", "I32", "F8_E4M3", 32, ["F32"])),
        *((one(shape=odd), ("expected a shape of counts", f"found {odd!r}")) for odd in (
            1, "1", [-1], [1.0], [True], ["1"], [-0.0])),
        (one(shape=[2**63]), ("expected a shape of counts", "found [9.22")),
        *((one(data_offsets=odd), ("expected two data_offsets", f"found {odd!r}")) for odd in (
            [0], [0, 4, 4], [0, 4.0], [-4, 0], [False, 4], None)),
    ],
)  # fmt: skip
def test_an_entry_that_is_not_a_tensor_is_refused_with_its_name(header, words):
    refused(safetensors_file(header, bytes(4)), errors.HeaderMalformed, "tensor 't'", *words)


@pytest.mark.parametrize(
    ("tensors", "data", "words"),
    [
        ({"a": (4, 0, 4), "b": (4, 8, 12)}, 12, ("'b' comes after a gap", "byte 4, found 8")),
        ({"a": (4, 0, 4), "b": (4, 2, 6)}, 6, ("'b' overlaps", "at byte 4, found 2")),
        ({"a": (4, 0, 8)}, 8, ("shape [1] of F32 takes 4 bytes", "span 8")),
        ({"a": (4, 0, 2)}, 2, ("shape [1] of F32 takes 4 bytes", "span 2")),
        ({"a": (4, 4, 0)}, 4, ("'a' comes after a gap",)),
        ({"z": (0, 0, 0), "a": (4, 0, 4), "b": (4, 4, 0)}, 4, ("span -4",)),
        ({"a": (4, 0, 4)}, 3, ("take 4 bytes, but 3 follow", "cut off")),
        ({"a": (4, 0, 4)}, 5, ("take 4 bytes, but 5 follow", "other bytes come after them")),
        ({}, 1, ("take 0 bytes, but 1 follow", "other bytes come after them")),
    ],
)
def test_tensors_that_do_not_fill_the_file_exactly_are_refused_with_their_place(
    tensors, data, words
):
    header = {
        name: entry("F32", [size // 4], start, end) for name, (size, start, end) in tensors.items()
    }
    refused(safetensors_file(header, bytes(data)), errors.TensorLayout, *words)


NEARLY_ALL = 10**18 - 1  # the largest count that is read as one


@pytest.mark.parametrize("shape", [[2**58], [NEARLY_ALL] * 900, [NEARLY_ALL, 0, NEARLY_ALL]])
def test_a_size_that_overflows_is_refused_even_where_the_product_ends_in_zero(shape):
    header = {"t": entry("F64", shape, 0, 0)}
    refused(safetensors_file(header), errors.TensorLayout, "64 bits", f"found shape [{shape[0]}")


def test_the_cap_on_the_header_is_the_callers():
    content = safetensors_file(b"{}" + b" " * 98)
    assert read(content, max_header_bytes=100).data_start == 108
    with pytest.raises(errors.HeaderTooLarge, match="claims 100 bytes, at most 99"):
        read(content, max_header_bytes=99)
