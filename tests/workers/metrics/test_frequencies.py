"""Oracles: a dictionary of n-grams as text, and the definition of CIDEr-D."""

import hashlib
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from builders import captions_with_references
from service.contract.errors import MetricFailed
from workers.metrics import frequencies, postgen, references
from workers.metrics.java.jvm import Jvm

WORDS = [
    "a",
    "the",
    "man",
    "dog",
    "cat",
    "runs",
    "sits",
    "on",
    "grass",
    "big",
    "3\u00a01/2",
    "l'été",
]


def _prepared(people):
    with Jvm() as unused:
        return references.prepare_references(people, "none", unused)


def _ngrams(text):
    words = text.split()
    return Counter(
        tuple(words[start : start + n]) for n in (1, 2, 3, 4) for start in range(len(words) - n + 1)
    )


def _held(people):
    """In how many images each n-gram occurs."""
    return Counter(
        ngram for image in people for ngram in {each for text in image for each in _ngrams(text)}
    )


def _cider_d(captions, people, held, images):
    """From the definition: clipped counts, a penalty on the difference in bigrams, times ten."""

    def vectors(text):
        found = [{}, {}, {}, {}]
        for ngram, count in _ngrams(text).items():
            idf = math.log(images) - math.log(max(1, held[ngram]))
            found[len(ngram) - 1][ngram] = count * idf
        return found

    def similarity(own, theirs):
        norms = math.hypot(*own.values()) * math.hypot(*theirs.values())
        product = math.fsum(
            min(value, theirs[ngram]) * theirs[ngram]
            for ngram, value in own.items()
            if ngram in theirs
        )
        return product / norms if norms else 0.0

    scores = []
    for text, image in zip(captions, people, strict=True):
        total = 0.0
        for other in image:
            bigrams = [max(0, len(each.split()) - 1) for each in (text, other)]
            penalty = math.exp(-((bigrams[0] - bigrams[1]) ** 2) / 72)
            pairs = zip(vectors(text), vectors(other), strict=True)
            total += penalty * sum(similarity(*pair) for pair in pairs) / 4
        scores.append(10 * total / len(image))
    return scores


@pytest.fixture(scope="module")
def corpus():
    return captions_with_references([*WORDS, "elsewhere", "only"], 300, 1)[1]


def _score(captions, people, idf, rows=None):
    rows = np.arange(len(captions)) if rows is None else rows
    with Jvm() as unused:
        return postgen.score_tokens("cider_d", captions, _prepared(people), rows, unused, idf=idf)


def test_a_corpus_has_the_frequencies_that_counting_gives(corpus):
    """And an n-gram of one image is not kept."""
    found = frequencies.collect_frequencies(_prepared(corpus))
    held = _held(corpus)
    several = {ngram: images for ngram, images in held.items() if images > 1}
    assert (found.images, len(found.keys)) == (len(corpus), len(several))
    assert sorted(found.counts.tolist()) == sorted(several.values())
    assert (np.diff(found.keys) > 0).all()


def test_an_ngrams_hash_is_the_one_that_is_documented():
    """With Python's own integers: files that are written are read by later versions."""

    def mixed(before, word):
        digest = hashlib.blake2b(word.encode(), digest_size=8).digest()
        value = (before * 0x9E3779B97F4A7C15 + int.from_bytes(digest, "little")) % 2**64
        value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
        return value ^ (value >> 31)

    found = frequencies.collect_frequencies(_prepared([["a dog"], ["a dog", "dog"]]))
    wanted = [mixed(0, "a"), mixed(0, "dog"), mixed(mixed(0, "a"), "dog")]
    assert sorted(found.keys.view(np.uint64).tolist()) == sorted(wanted)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_cider_d_on_another_corpuss_scale_is_the_definitions(corpus, seed):
    """700 captions: more than one block. Their n-grams are in their references, in the corpus
    alone, or nowhere.
    """
    words = [*WORDS, "elsewhere", "nowhere"]
    captions, _ = captions_with_references(words, 700, seed)
    _, people = captions_with_references(WORDS, 700, seed + 10)
    given = frequencies.collect_frequencies(_prepared(corpus))
    found = _score(captions, people, given)
    expected = _cider_d(captions, people, _held(corpus), len(corpus))
    np.testing.assert_allclose(found.captions["cider_d"], expected, rtol=1e-12, atol=0)
    assert f"|df:given({given.digest[:12]}, n=300)|" in found.signatures["cider_d"]


def test_frequencies_of_the_split_itself_are_the_usual_ones(corpus):
    captions, people = captions_with_references(WORDS, 200, 5)
    given = frequencies.collect_frequencies(_prepared(people))
    usual = _score(captions, people, "dataset").captions["cider_d"]
    found = _score(captions, people, given).captions["cider_d"]
    np.testing.assert_allclose(found, usual, rtol=1e-12, atol=0)


def test_a_part_of_the_captions_gets_the_same_digits(corpus):
    captions, people = captions_with_references([*WORDS, "elsewhere"], 700, 7)
    people = [image[:1] for image in people]
    given = frequencies.collect_frequencies(_prepared(corpus))
    whole = _score(captions, people, given).captions["cider_d"]
    rows = np.random.default_rng(0).permutation(700)[:90]
    part = _score([captions[row] for row in rows], people, given, rows).captions["cider_d"]
    np.testing.assert_array_equal(part, whole[rows])


def test_one_image_is_scored_at_last(corpus):
    """By its own frequencies it gets 0."""
    given = frequencies.collect_frequencies(_prepared(corpus))
    assert _score(["a big dog"], [["a big dog"]], given).corpus["cider_d"] > 2


def test_captions_that_share_nothing_with_their_references_get_0(corpus):
    given = frequencies.collect_frequencies(_prepared(corpus))
    found = _score(["big big cat", "nowhere", ""], [["a dog"]] * 3, given)
    assert found.captions["cider_d"].tolist() == [0, 0, 0]


def test_frequencies_of_other_tokens_are_refused(corpus):
    given = frequencies.collect_frequencies(_prepared(corpus))
    with Jvm() as unused:
        other = replace(_prepared([["a dog"]]), tokenizer="ptb")
        with pytest.raises(MetricFailed, match="'none', found 'ptb'"):
            postgen.score_tokens("cider_d", ["a dog"], other, np.arange(1), unused, idf=given)
