from collections import Counter

import numpy as np
import pytest
from pycocoevalcap.cider.cider_scorer import precook

from service.contract.errors import MetricFailed
from workers.metrics import references

RAW = [
    ["A dog runs.", "A dog, running"],
    ["A cat\nsleeps", "a dog runs"],
    ["A cat.", "Cat cat cat", "a  cat"],
]


def _frequencies(prepared):
    """Document frequencies by n-gram, its words joined by blanks."""
    found, shorter = {}, [""]
    for level in prepared.levels:
        shorter = [
            f"{shorter[key >> 32]} {prepared.words[key & 0xFFFFFFFF]}"
            for key in level.keys.tolist()
        ]
        counts = np.bincount(level.ngrams, minlength=len(shorter)).tolist()
        found |= {text.strip(): n for text, n in zip(shorter, counts, strict=True)}
    return found


def test_the_counts_are_those_of_dictionaries(jvm):
    rng = np.random.default_rng(0)
    words = ["a", "b", "c", "no\u00a0break", "…"]
    people = [
        [" ".join(rng.choice(words, rng.integers(0, 9))) for _ in range(rng.integers(1, 6))]
        for _ in range(50)
    ]
    prepared = references.prepare_references(people, "none", jvm)
    cooked = [[precook(caption) for caption in image] for image in people]
    expected = Counter(
        " ".join(ngram) for image in cooked for ngram in {key for each in image for key in each}
    )
    assert _frequencies(prepared) == expected
    for level, n in zip(prepared.levels, (1, 2, 3, 4), strict=True):
        flat = [count for image in cooked for each in image for count in each.items()]
        assert level.counts.sum() == sum(count for ngram, count in flat if len(ngram) == n)
        most = [{} for _ in people]
        for image, each in ((image, each) for image, found in enumerate(cooked) for each in found):
            for ngram, count in each.items():
                if len(ngram) == n:
                    most[image][ngram] = max(count, most[image].get(ngram, 0))
        assert sorted(level.most) == sorted(count for image in most for count in image.values())


def test_what_is_written_is_read(jvm, tmp_path):
    odd = [*RAW, ['"quoted"', "\u00a0 3 1/2 \U0001f415 ünï", ""]]
    for tokenizer in ("ptb", "none"):
        prepared = references.prepare_references(odd, tokenizer, jvm)
        references.write_references(tmp_path / "file", prepared)
        found = references.read_references(tmp_path / "file")
        assert (found.tokenizer, found.captions) == (prepared.tokenizer, prepared.captions)
        for name in ("words", "offsets", "tokens", "token_counts", "word_counts"):
            np.testing.assert_array_equal(getattr(found, name), getattr(prepared, name))
        for read, written in zip(found.levels, prepared.levels, strict=True):
            for name, values in vars(written).items():
                np.testing.assert_array_equal(getattr(read, name), values)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("counts", "said"), [([5, 5], "refs:5"), ([5, 7, 6], "refs:5-7"), ([1], "refs:1")]
)
def test_the_signature_says_how_many_there_are_and_how_they_were_tokenised(jvm, counts, said):
    prepared = references.prepare_references([["a"] * count for count in counts], "none", jvm)
    assert prepared.signature == f"{said}|tok:none"
    assert references.prepare_references(RAW, "ptb", jvm).signature == "refs:2-3|tok:ptb3.4.1"


def test_an_image_without_references_is_an_error(jvm):
    with pytest.raises(MetricFailed, match="image 1: expected at least one reference"):
        references.prepare_references([["a"], []], "none", jvm)
    with pytest.raises(MetricFailed, match="image 0: expected at least one reference"):
        references.index_tokens([[]], "none")
