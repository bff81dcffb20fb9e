"""Oracles: gensim's own reader and writer of word vectors, and files made byte by byte."""

import gzip
import hashlib
import struct

import numpy as np
import pytest
from gensim.models import KeyedVectors
from hypothesis import given
from hypothesis import strategies as st

from service.contract.errors import MetricFailed
from workers import tensor_files
from workers.metrics.vectors import word2vec, word_vectors

WORDS = ["in", "New_York", "München", "猫", "don't", "</s>", "x" * 900]
NUMBERS = np.random.default_rng(0).normal(size=(len(WORDS), 5)).astype(np.float32)


def _binary(words, numbers, end="\n"):
    rows = [
        word.encode() + b" " + struct.pack(f"<{len(row)}f", *row) + end.encode()
        for word, row in zip(words, numbers, strict=True)
    ]
    return f"{len(words)} {len(numbers[0])}\n".encode() + b"".join(rows)


def _glove(words, numbers):
    rows = zip(words, numbers, strict=True)
    lines = [" ".join([word, *map(repr, map(float, row))]) for word, row in rows]
    return "\n".join([*lines, ""]).encode()


def _text(words, numbers):
    return f"{len(words)} {len(numbers[0])}\n".encode() + _glove(words, numbers)


def _converted(content, folder):
    source, target = folder / "vectors", folder / "converted"
    source.write_bytes(content)
    word2vec.convert_word_vectors(source, target)
    return word_vectors.read_word_vectors(target)


def _check(found, words, numbers):
    rows = found.find(words)
    np.testing.assert_array_equal(found.vectors[rows], numbers)


@pytest.mark.parametrize(
    ("written", "loaded"),
    [
        ({"binary": False}, {"binary": False}),
        ({"binary": True}, {"binary": True}),
        ({"write_header": False}, {"no_header": True}),
    ],
    ids=["word2vec's text", "word2vec's binary", "GloVe"],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # of GloVe's, by gensim
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_every_format_is_read_as_gensim_reads_it(tmp_path, written, loaded, pack):
    keyed = KeyedVectors(5)
    keyed.add_vectors(WORDS, NUMBERS)
    path = tmp_path / "saved"
    keyed.save_word2vec_format(str(path), **written)
    oracle = KeyedVectors.load_word2vec_format(str(path), **loaded)
    found = _converted(pack(path.read_bytes()), tmp_path)
    _check(found, WORDS, oracle[WORDS])
    _check(found, WORDS, NUMBERS)


@pytest.mark.parametrize(
    "content",
    [
        b"2 3\nin 1 -0.5 2e1\nat 0 1 3\n",
        b"2 3\r\nin 1 -0.5 2e1\r\nat 0 1 3\r\n",
        b"2 3\nin 1 -0.5 2e1 \nat 0 1 3\n\n",
        b"in 1 -0.5 2e1\nat 0 1 3\n",
        b"2 3\nin \x00\x00\x80?\x00\x00\x00\xbf\x00\x00\xa0Aat \0\0\0\0\x00\x00\x80?\x00\x00@@",
        b"2 3\nin \x00\x00\x80?\x00\x00\x00\xbf\x00\x00\xa0A\nat \0\0\0\0\x00\x00\x80?\x00\x00@@\n",
    ],
    ids=["text", "of Windows", "with blanks", "GloVe", "Google's binary", "with line breaks"],
)
def test_a_file_made_by_hand_has_these_vectors(tmp_path, content):
    found = _converted(content, tmp_path)
    _check(found, ["in", "at"], [[1, -0.5, 20], [0, 1, 3]])
    assert found.source == hashlib.sha256(content).hexdigest()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["converted", "vectors"]


# Doubles that float32 rounds, a word that is not UTF-8, a word that stands twice.
ODD_TEXT = (
    b"5 2\nin 0.1 -2.5e-3\nM\xc3\xbcnchen 1.0000000596046448 3.4e38\n\xe7\xff -0.0 1e-45\n"
    b"in 7 7\n</s> 16777217 0.30000001192092896\n"
)
ODD_BINARY = b"3 2\n" + b"".join(
    word + b" " + struct.pack("<2f", *numbers)
    for word, numbers in ((b"in", (0.1, -2.5)), (b"\n\xe7\xff", (3.4e38, 1e-45)), (b"in", (7, 7)))
)


@pytest.mark.parametrize(
    ("content", "digest"),
    [
        (ODD_TEXT, "56addad26984d991b39fd74b8ed494c61f9687b2653990f6caa41cc0f281f3a3"),
        (ODD_BINARY, "a32edab6c45ee11eff3d21e965a8095a559be9e4a3242e7c6d43cd118f7a65d1"),
    ],
)
def test_a_file_is_converted_to_the_bytes_that_keys_of_tasks_name(tmp_path, content, digest):
    _converted(content, tmp_path)
    assert hashlib.sha256((tmp_path / "converted").read_bytes()).hexdigest() == digest


def test_words_that_share_half_a_key_are_told_apart():
    half = b"12345678"
    keys = word_vectors.hash_word(b"a")[:8] + half + word_vectors.hash_word(b"a")
    found = word_vectors.collect_vectors("", np.zeros((2, 1), np.float32), keys)
    assert found.find(["a"]).tolist() == [1]


SHORT = _binary(WORDS, NUMBERS, "")
REFUSED = {
    "a pickle": (b"\x80\x04\x95abc\n", "a pickle, which runs code"),
    "a packed pickle": (gzip.compress(b"\x80\x04\x95abc\n"), "a pickle, which runs code"),
    "a zip file": (b"PK\x03\x04", "zip"),
    "a gzip file, cut off": (gzip.compress(SHORT)[:-9], "cut off, damaged"),
    "a gzip file, damaged": (b"\x1f\x8b\x08abc", "cut off, damaged"),
    "nothing": (b"", "first line"),
    "letters": (b"two 300\n", "first line"),
    "a sign": (b"-1 300\n", "first line"),
    "words": (b"a red ball\n", "first line"),
    "an endless line": (b"1" * 2_000_000, "first line"),
    "sizes of many digits": (b"9" * 5000 + b" 3\na 1 2 3\n", "first line"),
    "more words than there are": (b"20000000 300\na 1\n", "cut off"),
    "no words": (b"0 3\n", "expected words and numbers, found 0 of 3"),
    "no numbers": (b"3 0\na\nb\nc\n", "expected words and numbers, found 3 of 0"),
    "a word too few": (_text(WORDS, NUMBERS).replace(b"7 5", b"8 5"), "cut off"),
    "a number too few": (b"2 3\na 1 2 3\nb 3 4   \n", "word 2, 'b': expected 3 .* found 2"),
    "one number": (b"2 2\na 1 2\nb 3   \n", "word 2, 'b': expected 2 .* found 1"),
    "a number too many": (b"2 2\na 1 2\nb 3 4 5\n", "word 2, 'b': expected 2 .* found 3"),
    "GloVe, cut off": (b"the 0.1 0.2 0.3\nof 1 2\n", "word 2, 'of': expected 3 .* found 2"),
    "GloVe, a word with a blank": (b"the 0.1 0.2\nof me 1 2\n", "no word vectors: .*'me'"),
    "no number": (b"2 2\na 1 2\nb 3 x\n", "no word vectors: .*'x'"),
    "not finite": (b"2 2\na 1 2\nb 3 nan\n", "'b': expected 2 finite numbers"),
    "too large": (b"2 2\na 1 2\nb 3 1e300\n", "'b': expected 2 finite numbers"),
    "binary, cut off": (SHORT[:-1], "cut off"),
    "binary, not downloaded to its end": (SHORT[:-30] + bytes(30), "cut off"),
    "binary, shorter vectors": (SHORT.replace(b"7 5", b"7 4"), "vectors of another length"),
    "binary, longer vectors": (SHORT.replace(b"7 5", b"7 6"), "vectors of another length"),
    "binary, not finite": (_binary(["a"], [[1.0, float("inf")]]), "finite"),
}


@pytest.mark.parametrize(("content", "complaint"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_file_of_word_vectors_is_refused_and_leaves_nothing(
    tmp_path, content, complaint
):
    with pytest.raises(MetricFailed, match=complaint):
        _converted(content, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["vectors"]


@given(
    st.sampled_from([_binary(WORDS, NUMBERS), _text(WORDS, NUMBERS), _glove(WORDS, NUMBERS)]),
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


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"20000000 3\na 1 2 3\n", "20000000 words of 3 numbers, of 6.2 GB"),
        (gzip.compress(b"1 1\n" + bytes(40_000_000)), "a file of 0.0 GB"),
        (b"a 1 2\n" * 100_000, "100000 words of 2 numbers, of 0.0 GB"),
    ],
    ids=["claimed words", "a packed line", "GloVe's words"],
)
def test_what_does_not_fit_in_memory_is_refused_before_it_is_read(
    tmp_path, monkeypatch, content, what
):
    monkeypatch.setattr(word2vec, "machine_memory", lambda: 20_000_000)
    with pytest.raises(MetricFailed, match=f"fit in 0.0 GB of memory, found .*{what}"):
        _converted(content, tmp_path)


def _parts(**changed):
    keys = b"".join(word_vectors.hash_word(word.encode()) for word in WORDS)
    found = word_vectors.collect_vectors("", NUMBERS, keys)
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
    tensor_files.write_tensors(tmp_path / "it", parts, {"prescore_word_vectors": "1", "source": ""})
    with pytest.raises(MetricFailed, match=complaint):
        word_vectors.read_word_vectors(tmp_path / "it")


@pytest.mark.parametrize("content", [b"", b"{}", b"\x02\0\0\0\0\0\0\0{}", b"\xff" * 64])
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "it").write_bytes(content)
    with pytest.raises(MetricFailed, match="it"):
        word_vectors.read_word_vectors(tmp_path / "it")
