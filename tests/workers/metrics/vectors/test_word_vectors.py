"""Oracle: gensim's own reader and writer of word2vec's files."""

import hashlib
import struct
import tracemalloc

import numpy as np
import pytest
from gensim.models import KeyedVectors
from hypothesis import given
from hypothesis import strategies as st

from service.contract.errors import MetricFailed
from workers.files import tensor_files
from workers.metrics.vectors import word2vec, word_vectors

WORDS = ["in", "New_York", "München", "猫", "don't", "</s>", "x" * 900]
NUMBERS = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)


def _binary(words, numbers, end="\n"):
    rows = [
        word.encode() + b" " + struct.pack(f"<{len(row)}f", *row) + end.encode()
        for word, row in zip(words, numbers, strict=True)
    ]
    return f"{len(words)} {len(numbers[0])}\n".encode() + b"".join(rows)


def _text(words, numbers):
    rows = [
        " ".join([word, *map(repr, map(float, row))])
        for word, row in zip(words, numbers, strict=True)
    ]
    return "\n".join([f"{len(words)} {len(numbers[0])}", *rows, ""]).encode()


def _converted(content, folder):
    source, target = folder / "vectors", folder / "converted"
    source.write_bytes(content)
    word2vec.convert(source, target)
    return word_vectors.read(target)


def _check(found, words, numbers):
    rows = found.find(words)
    np.testing.assert_array_equal(found.vectors[rows], numbers)


@pytest.mark.parametrize("binary", [False, True])
def test_a_file_of_gensims_is_read_as_gensim_reads_it(tmp_path, binary):
    keyed = KeyedVectors(5)
    keyed.add_vectors(WORDS, NUMBERS)
    path = tmp_path / "saved"
    keyed.save_word2vec_format(str(path), binary=binary)
    loaded = KeyedVectors.load_word2vec_format(str(path), binary=binary)
    found = _converted(path.read_bytes(), tmp_path)
    _check(found, WORDS, loaded[WORDS])
    _check(found, WORDS, NUMBERS)


@pytest.mark.parametrize("end", ["\n", ""])
def test_googles_file_has_no_line_breaks_and_others_have(tmp_path, end):
    _check(_converted(_binary(WORDS, NUMBERS, end), tmp_path), WORDS, NUMBERS)


def test_many_words_are_found_again_and_no_others(tmp_path):
    """More than a block and a chunk of the reader."""
    rng = np.random.default_rng(1)
    words = [f"word{index}" for index in range(5000)]
    numbers = rng.normal(size=(5000, 300)).astype(np.float32)
    found = _converted(_binary(words, numbers), tmp_path)
    _check(found, words, numbers)
    assert found.find(["word5000", "", "\ud800", "WORD1", "word1"]).tolist() == [-1, -1, -1, -1, 1]
    assert found.find([]).tolist() == []


def test_of_a_word_that_stands_twice_the_first_counts_as_with_gensim(tmp_path):
    words = ["b", "a", "b", "a", "c", "b"]
    numbers = np.arange(12, dtype=np.float32).reshape(6, 2)
    found = _converted(_text(words, numbers), tmp_path)
    assert found.find(["a", "b", "c"]).tolist() == [1, 0, 4]
    loaded = KeyedVectors.load_word2vec_format(str(tmp_path / "vectors"), binary=False)
    _check(found, ["a", "b", "c"], loaded[["a", "b", "c"]])


def test_words_that_share_half_a_key_are_told_apart():
    half = b"12345678"
    keys = word_vectors.key(b"a")[:8] + half + word_vectors.key(b"a")
    found = word_vectors.collect("", np.zeros((2, 1), np.float32), keys)
    assert found.find(["a"]).tolist() == [1]


def test_a_word_that_is_not_utf8_is_kept_and_never_asked_for(tmp_path):
    content = b"2 1\n\xe7\xff " + struct.pack("<f", 1) + b"b " + struct.pack("<f", 2)
    assert _converted(content, tmp_path).find(["b", "\ufffd"]).tolist() == [1, -1]


def test_the_source_is_the_files_sha256(tmp_path):
    content = _text(["a"], NUMBERS[:1])
    assert _converted(content, tmp_path).source == hashlib.sha256(content).hexdigest()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["converted", "vectors"]


LONG = b"2 2\n" + b"w" * 1001 + b" 1 2\nb 3 4\n"
REFUSED = {
    "a pickle": (b"\x80\x04\x95abc\n", "a pickle, which runs code"),
    "a gzip file": (b"\x1f\x8b\x08abc", "gzip"),
    "a zip file": (b"PK\x03\x04", "zip"),
    "nothing": (b"", "first line"),
    "GloVe": (b"the 0.1 0.2 0.3\nof 1 2 3\n", "GloVe's files lack it"),
    "letters": (b"two 300\n", "first line"),
    "a sign": (b"-1 300\n", "first line"),
    "three numbers": (b"1 2 3\n", "first line"),
    "an endless line": (b"1" * 1000, "first line"),
    "no words": (b"0 3\n", "1 to 20000000 words"),
    "no numbers": (b"3 0\n", "1 to 4096 numbers"),
    "too many words": (b"20000001 3\n", "found 20000001 of 3"),
    "too many numbers": (b"3 4097\n", "found 3 of 4097"),
    "more than the file has": (b"20000000 300\na 1\n", "the file is cut off"),
    "a word too few": (_text(WORDS, NUMBERS).replace(b"7 5", b"8 5"), "expected 8 words, found 7"),
    "a word too many": (_text(WORDS, NUMBERS).replace(b"7 5", b"6 5"), "expected 6 words, found"),
    "a number too few": (b"2 2\na 1 2\nb 3   \n", "line 3: .* found 1 behind b'b'"),
    "no number": (b"2 2\na 1 2\nb 3 x\n", "line 3: could not convert"),
    "not finite": (b"2 2\na 1 2\nb 3 nan\n", "finite numbers, the vector of b'b'"),
    "too large": (b"2 2\na 1 2\nb 3 1e300\n", "finite numbers, the vector of b'b'"),
    "no word": (b"2 2\na 1 2\n 3 4\n", "found 2 behind b''"),
    "a long word": (LONG, "word 1 of 2: expected a word of at most 1000 bytes"),
    "a long word in text": (b"2 2\nb 3 4\n" + LONG[4:], "line 3"),
    "binary, cut off": (_binary(WORDS, NUMBERS, "")[:-1], "word 7 of 7"),
    "binary, a word too many": (_binary(WORDS, NUMBERS).replace(b"7 5", b"6 5"), "6 words"),
    "binary, not finite": (_binary(["a"], [[1.0, float("inf")]]), "finite"),
}


@pytest.mark.parametrize(("content", "complaint"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_file_of_word2vecs_is_refused_and_leaves_nothing(tmp_path, content, complaint):
    with pytest.raises(MetricFailed, match=complaint):
        _converted(content, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["vectors"]


@given(
    st.sampled_from([_binary(WORDS, NUMBERS), _text(WORDS, NUMBERS)]),
    st.lists(st.tuples(st.integers(0, 400), st.binary(max_size=4)), max_size=4),
)
def test_a_damaged_file_is_read_or_refused(tmp_path_factory, content, changes):
    folder = tmp_path_factory.mktemp("damaged")
    for place, put in changes:
        content = content[:place] + put + content[place + 1 :]
    try:
        found = _converted(content, folder)
    except MetricFailed:
        return
    assert np.isfinite(found.vectors).all()


@pytest.mark.long
def test_a_large_file_is_converted_in_little_memory(tmp_path):
    words = [f"word{index}" for index in range(20_000)]
    (tmp_path / "source").write_bytes(_binary(words, np.ones((20_000, 300), np.float32)))
    tracemalloc.start()
    word2vec.convert(tmp_path / "source", tmp_path / "target")
    found = word_vectors.read(tmp_path / "target")
    found.find(words[:100])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "target").stat().st_size > 24e6
    assert peak < 8e6


def _parts(**changed):
    keys = b"".join(word_vectors.key(word.encode()) for word in WORDS)
    found = word_vectors.collect("", NUMBERS, keys)
    parts = {name: getattr(found, name) for name in ("vectors", "keys", "rows")}
    return {**parts, **changed}


@pytest.mark.parametrize(
    ("parts", "complaint"),
    [
        (_parts(rows=np.full(len(WORDS), len(WORDS), np.uint32)), "found row 7"),
        (_parts(rows=np.zeros(3, np.uint32)), "a key and a row for each of 7"),
        (_parts(keys=np.zeros(2 * len(WORDS), np.int64)), "a key and a row for each"),
        (_parts(vectors=NUMBERS[0]), "a key and a row for each"),
        (_parts(vectors=NUMBERS[:0]), "expected vectors"),
        (_parts(vectors=NUMBERS.astype(np.float16)), "expected vectors of float32"),
        ({"vectors": NUMBERS}, "expected word vectors of format 1"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused(tmp_path, parts, complaint):
    tensor_files.write(tmp_path / "it", parts, {"prescore_word_vectors": "1", "source": ""})
    with pytest.raises(MetricFailed, match=complaint):
        word_vectors.read(tmp_path / "it")


@pytest.mark.long
@pytest.mark.parametrize("content", [b"", b"{}", b"\x02\0\0\0\0\0\0\0{}", b"\xff" * 64])
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "it").write_bytes(content)
    with pytest.raises(MetricFailed, match="it"):
        word_vectors.read(tmp_path / "it")
