"""Published scores of 36 captioners, from Karpathy's tokens, with and without PTB on top."""

import numpy as np
import pytest

from parity import systems
from workers.metrics import postgen, references

ORDINARY = ("init_1", "merge_3")
FLICKR8K = [
    pytest.param(name, marks=[] if name in ORDINARY else [pytest.mark.slow])
    for name in systems.NAMES
]
OTHERS = [("flickr30k", name) for name in systems.NAMES] + [
    ("mscoco", name) for name in systems.NAMES
]


@pytest.fixture(scope="module")
def prepared(data, jvm):
    """References of a test set, prepared once for each tokeniser."""
    found = {}

    def prepare(dataset, tokenizer):
        if (dataset, tokenizer) not in found:
            captions = systems.references(data, dataset)
            found[dataset, tokenizer] = references.prepare(captions, tokenizer, jvm)
        return found[dataset, tokenizer]

    return prepare


def _corpus(family, system, refs, jvm):
    return postgen.score(family, system.captions, refs, np.arange(refs.images), jvm).corpus


def _agrees(system, refs, jvm, tolerance):
    found = {}
    for family in ("bleu", "rouge_l", "cider_d"):
        found |= _corpus(family, system, refs, jvm)
    published = dict(zip(("bleu_1", "bleu_2", "bleu_3", "bleu_4"), system.bleu, strict=True))
    published |= {"rouge_l": system.rouge_l, "cider_d": system.cider_d}
    assert found == pytest.approx(published, abs=tolerance)


@pytest.mark.parametrize("tokenizer", ["none", "ptb"])
@pytest.mark.parametrize("name", FLICKR8K)
def test_flickr8k_systems_score_as_published(data, jvm, prepared, name, tokenizer):
    """Required: 1e-3; reached: 7e-5 (their references differ from ours in a few tokens)."""
    system = systems.system(data, "flickr8k", name)
    _agrees(system, prepared("flickr8k", tokenizer), jvm, 1e-4)


@pytest.mark.parametrize("name", FLICKR8K)
def test_meteor_of_flickr8k_systems_is_the_published_one_in_all_digits(data, jvm, prepared, name):
    system = systems.system(data, "flickr8k", name)
    refs = prepared("flickr8k", "none")
    found = postgen.score("meteor", system.captions, refs, np.arange(refs.images), jvm)
    assert repr(found.corpus["meteor"]) == system.meteor
    assert name != "init_1" or system.meteor == "0.19329464433450766"
    for place, score in enumerate(found.captions["meteor"].tolist()):  # the jar's own of each
        one = {key: values[[place]] for key, values in found.statistics.items()}
        assert postgen.corpus_from_statistics("meteor", one)["meteor"] == score


@pytest.mark.slow
@pytest.mark.parametrize(("dataset", "name"), OTHERS)
def test_systems_of_the_larger_sets_score_as_published(data, jvm, prepared, dataset, name):
    """METEOR is exact for 17 of 24 and at most 2e-5 away for the others, where ours equals the
    jar's stdio protocol: their references are not ours to the letter.
    """
    system = systems.system(data, dataset, name)
    for tokenizer in ("none", "ptb"):
        _agrees(system, prepared(dataset, tokenizer), jvm, 1e-4)
    meteor = _corpus("meteor", system, prepared(dataset, "none"), jvm)["meteor"]
    assert meteor == pytest.approx(float(system.meteor), abs=3e-5)
