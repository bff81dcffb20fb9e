import json

import pytest

from service.contract.errors import MetricFailed
from workers.metrics import references

RAW = [
    ["A dog runs.", "A dog, running"],
    ["A cat\nsleeps", "a dog runs"],
    ["A cat.", "Cat cat cat", "a  cat"],
]


def test_references_are_tokenised_and_stay_with_their_image(jvm):
    prepared = references.prepare(RAW, "ptb", jvm)
    assert prepared.captions == (
        ("a dog runs", "a dog running"),
        ("a cat sleeps", "a dog runs"),
        ("a cat", "cat cat cat", "a cat"),
    )
    assert prepared.images == 3


def test_an_n_gram_counts_once_for_each_image_that_has_it(jvm):
    prepared = references.prepare(RAW, "ptb", jvm)
    counted = {" ".join(ngram): n for ngram, n in prepared.frequencies.items()}
    assert counted == {
        "a": 3, "cat": 2, "a cat": 2, "dog": 2, "runs": 2, "a dog": 2, "dog runs": 2,
        "a dog runs": 2,
    }  # fmt: skip
    assert prepared.frequencies["sleeps",] == prepared.frequencies["never", "seen"] == 0
    assert len(prepared.frequencies) == 8, "asking adds nothing"


def test_what_is_written_is_read(jvm, tmp_path):
    odd = [*RAW, ['"quoted"', "\u00a0 3 1/2 \U0001f415 ünï", ""]]
    for tokenizer in ("ptb", "none"):
        prepared = references.prepare(odd, tokenizer, jvm)
        references.write(tmp_path / "file", prepared)
        found = references.read(tmp_path / "file")
        assert found == prepared
        assert found.frequencies["never", "seen"] == 0
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("counts", "said"), [([5, 5], "refs:5"), ([5, 7, 6], "refs:5-7"), ([1], "refs:1")]
)
def test_the_signature_says_how_many_there_are_and_how_they_were_tokenised(jvm, counts, said):
    prepared = references.prepare([["a"] * count for count in counts], "none", jvm)
    assert prepared.signature == f"{said}|tok:none"
    assert references.prepare(RAW, "ptb", jvm).signature == "refs:2-3|tok:ptb3.4.1"


def test_an_image_without_references_is_an_error(jvm):
    with pytest.raises(MetricFailed, match="image 1: expected at least one reference"):
        references.prepare([["a"], []], "none", jvm)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"{}",
        json.dumps({"prescore_references": 2, "tokenizer": "ptb"}).encode(),
        json.dumps({"prescore_references": 1, "tokenizer": "bert"}).encode(),
        json.dumps({"prescore_references": 1, "tokenizer": "ptb", "captions": 3}).encode(),
    ],
)
def test_another_file_is_refused(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(MetricFailed, match="file"):
        references.read(tmp_path / "file")
