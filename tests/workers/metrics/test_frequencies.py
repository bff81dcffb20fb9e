"""Oracles: a dictionary of n-grams as text, and the definition of CIDEr-D."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from helpers.builders import captions_with_references
from oracles import caption_definitions as definitions
from service.contract.errors import MetricFailed
from workers.metrics import frequencies, postgen, references
from workers.metrics.java.jvm import Jvm

WORDS = ["a", "the", "man", "dog", "cat", "runs", "sits", "on", "grass", "big", "3\xa01/2", "l'été"]


def _prepared(people):
    with Jvm() as unused:
        return references.prepare_references(people, "none", unused)


@pytest.fixture(scope="module")
def corpus():
    return captions_with_references([*WORDS, "elsewhere", "only"], 300, 1)[1]


def test_a_corpus_has_the_frequencies_that_counting_gives(corpus):
    """And an n-gram of one image is not kept."""
    found = frequencies.collect_frequencies(_prepared(corpus))
    held = definitions.count_images(corpus)
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
def test_cider_d_on_another_corpuss_scale_is_the_definitions(corpus):
    """700 captions: more than one block. Their n-grams are in their references, in the corpus
    alone, or nowhere.
    """
    words = [*WORDS, "elsewhere", "nowhere"]
    captions, _ = captions_with_references(words, 700, 0)
    _, people = captions_with_references(WORDS, 700, 10)
    given = frequencies.collect_frequencies(_prepared(corpus))
    refs, rows = _prepared(people), np.arange(700)
    with Jvm() as unused:
        found = postgen.score_tokens("cider_d", captions, refs, rows, unused, idf=given)
    expected = definitions.cider_d(captions, people, corpus)
    np.testing.assert_allclose(found.captions["cider_d"], expected, rtol=1e-12, atol=0)
    assert f"|df:given({given.digest[:12]}, n=300)|" in found.signatures["cider_d"]


def test_frequencies_of_other_tokens_are_refused(corpus):
    given = frequencies.collect_frequencies(_prepared(corpus))
    with Jvm() as unused:
        other = replace(_prepared([["a dog"]]), tokenizer="ptb")
        with pytest.raises(MetricFailed, match="'none', found 'ptb'"):
            postgen.score_tokens("cider_d", ["a dog"], other, np.arange(1), unused, idf=given)
