"""Refusing costs less than a second and less than 64 MB, whatever a file claims (T42, T43, T45).

Each case runs in a process of its own whose address space may grow by so much and no more, so that
even memory which is asked for and never touched would be a failure.
"""

import json

import pytest

from helpers.columns_files import columns
from helpers.contract_files import (
    checkpoint,
    cost_of_reading,
    features,
    line,
    pax_record,
    safetensors_file,
    tar,
    tar_block,
    tar_entry,
)

pytestmark = pytest.mark.processes

LIMIT = 64 * 10**6
LIMIT_OF_COLUMNS = 200 * 10**6  # names of a million images are read
FULL = 3_990_000  # just under the longest header that is looked at


def _judged(what, path, error):
    limit = LIMIT_OF_COLUMNS if what == "columns" else LIMIT
    name, text, seconds, grown = cost_of_reading(what, path, limit)
    assert name == error, text
    assert len(text) < 1000
    assert seconds < 1
    assert grown < limit


def many_tensors(count):
    entries = (b'"%d":{"dtype":"F32","shape":[],"data_offsets":[0,0]}' % n for n in range(count))
    return b"{" + b",".join(entries) + b"}"


def wide_dtype():
    return '{"😀":{"dtype":"' + "\U000e0001" * 900_000 + '","shape":[],"data_offsets":[0,0]}}'


def long_shape():
    numbers = b",".join([b"999999999999999999"] * 900)
    return b'{"a":{"dtype":"F32","shape":[' + numbers + b'],"data_offsets":[0,4]}}'


HEADERS = {
    "500,000 tensors": ("HeaderTooLarge", lambda: many_tensors(500_000)),
    "as many keys as fit": ("HeaderTooLarge", lambda: b"{" + b'"":0,' * (FULL // 5) + b"}"),
    "lists in lists": ("HeaderTooLarge", lambda: b'{"a":' + b"[" * FULL),
    "lists after an escape": ("HeaderTooLarge", lambda: b'{"\\\\":[' + b"[]," * (FULL // 3)),
    "blanks": ("HeaderTooLarge", lambda: b"{" + b" " * FULL + b"x"),
    "deep": ("HeaderMalformed", lambda: b'{"a":' * 3900 + b"}" * 3900),
    "a deep surrogate": ("HeaderMalformed", lambda: b'{"a":' * 600 + b'"\\ud800"' + b"}" * 600),
    "a name of 4 MB": ("HeaderMalformed", lambda: b'{"' + b"n" * FULL + b'":0}'),
    "backslashes": ("HeaderMalformed", lambda: b'{"' + b"\\\\" * (FULL // 2) + b'":0}'),
    "a dtype of 4 MB of tags": ("HeaderMalformed", lambda: wide_dtype().encode()),
    "a shape of 16,000 digits": ("TensorLayout", long_shape),
}


def words(count, *more, ending=""):
    listed = [*(f"{n:x}{ending}" for n in range(count)), *more]
    return {"vocabulary": json.dumps(listed, separators=(",", ":"), ensure_ascii=False)}


def surrogate_at_the_end():
    return {"vocabulary": words(240_000)["vocabulary"][:-1] + ',"\\ud800"]'}


def notes():
    return {f"n{n}": "😀" + "x" * 90_000 for n in range(40)}


KEYS = '"cell":"gru","size":16384,"feature_size":1048576'
METADATA = {
    "250,000 words": ("VocabularyInvalid", lambda: words(249_998, "a", "a")),
    "wide words": ("VocabularyInvalid", lambda: words(160_000, "a", "a", ending="😀")),
    "a surrogate at the end": ("VocabularyInvalid", surrogate_at_the_end),
    "a word of 3 MB": ("VocabularyInvalid", lambda: words(2, "x" * 3 * 10**6)),
    "lists for words": ("VocabularyInvalid", lambda: {"vocabulary": "[" + "[]," * 10**6 + "[]]"}),
    "a deep config": ("ConfigInvalid", lambda: {"config": '{"size":' + "[" * 90_000}),
    "7,000 keys": ("ConfigInvalid", lambda: {"config": json.dumps(dict.fromkeys(range(7000)))}),
    "a matrix of 64 GB": ("TensorMismatch", lambda: {"config": "{" + KEYS + "}"}),
    "notes of 3.6 MB": ("MetadataInvalid", lambda: {**notes(), "tokenizer": "none"}),
}


LINES = {
    "no end of line": lambda: b'{"image": "' + b"a" * 5 * 10**7,
    "empty objects": lambda: b'{"x": [' + b"{}," * 333_000 + b'"\\ud800"]}',
    "numbers": lambda: b'{"x": [' + b"1e9," * 249_000 + b"1]}",
    "deep lists": lambda: b'{"x": ' + b"[" * 500_000 + b"]" * 400_000 + b"}",
    "a deep surrogate": lambda: b'{"x":' + b'{"a":' * 900 + b'"\\ud800"' + b"}" * 901,
    "digits": lambda: b'{"id": ' + b"1" * 900_000 + b"}",
    "a caption of 900 KB": lambda: line(references=["x" * 900_000]),
}


CAPTIONS = tar_entry(b"captions.jsonl", line())
SPARSE = tar_entry(b"p", pax_record(b"GNU.sparse.major", b"1"), b"x")
TARS = {
    "a header that claims a terabyte": lambda: tar_block(b"p", 2**40, b"x"),
    "a header of 70 MB": lambda: tar_entry(b"p", bytes(7 * 10**7), b"x"),
    "a name of 70 MB": lambda: tar_entry(b"p", b"x" * 7 * 10**7, b"L"),
    "a chain of headers": lambda: tar_entry(b"p", pax_record(b"a", b"b"), b"x") * 20_000,
    "digits for a record": lambda: tar_entry(b"p", b"1" * 90_000, b"x"),
    "a sparse map of 70 MB": lambda: SPARSE + tar_entry(b"f", b"9\n" * (35 * 10**6)),
    "a size below zero": lambda: tar_block(b"f", -1024),
    **{
        f"lists for {name}": lambda name=name: tar_entry(
            b"features.safetensors", features(metadata={name: LISTS})
        )
        for name in ("ids", "encoder")
    },
}


LISTS = "[" + "[]," * 10**6 + "[]]"
COLUMNS = {
    "lists for images": lambda: {"images": LISTS},
    "a million empty names": lambda: {"images": "[" + '"",' * 10**6 + '""]'},
}
KINDS = [  # what reads; how its file is made of a case; the cases, with their errors
    ("checkpoint", lambda raw: safetensors_file(raw, bytes(4)), HEADERS),
    ("checkpoint", lambda told: checkpoint(metadata=told), METADATA),
    ("bundle", lambda text: tar(tar_entry(b"captions.jsonl", text)), LINES),
    ("bundle", lambda entries: tar(CAPTIONS, entries), TARS),
    ("columns", lambda told: columns(metadata=told), COLUMNS),
]
OF_ALL = {"bundle": "InvalidBundle", "columns": "ColumnsRefused"}


@pytest.mark.parametrize(
    ("what", "make", "case"),
    [
        pytest.param(what, make, case, id=name)
        for what, make, cases in KINDS
        for name, case in cases.items()
    ],
)
def test_what_is_hostile_is_refused_at_little_cost(what, make, case, tmp_path):
    error, made = case if isinstance(case, tuple) else (OF_ALL[what], case)
    path = tmp_path / "file"
    path.write_bytes(make(made()))
    _judged(what, path, error)
    path.unlink()


def test_a_header_of_10_gb_that_is_really_there_is_refused_unread(tmp_path):
    path = tmp_path / "sparse"
    path.write_bytes(safetensors_file(b'{"a":', length=10**10))
    with path.open("r+b") as stream:
        stream.truncate(10**10 + 8)
    _judged("checkpoint", path, "HeaderTooLarge")


def _long_lines():
    """A hundred lines of almost a megabyte; what stands last is wrong."""
    text = line("@", ["a man in a blue shirt stands in front of a building " * 150] * 122)
    for number in range(1, 110):
        yield text.replace(b"@", b"%06d" % number, 1)
    yield b"no item"


def test_100_mb_of_captions_are_read_to_the_last_line_in_bounded_memory(tmp_path):
    path = tmp_path / "bundle.tar"
    with path.open("wb") as stream:
        stream.write(bytes(512))
        size = sum(map(stream.write, _long_lines()))
        assert size > 100 * 10**6
        stream.write(bytes(-size % 512 + 1024))
        stream.seek(0)
        stream.write(tar_block(b"captions.jsonl", size))
    name, text, _, grown = cost_of_reading("bundle", path, LIMIT)
    assert (name, text[:10]) == ("InvalidBundle", "line 110: ")
    assert grown < 30 * 10**6
    path.unlink()
