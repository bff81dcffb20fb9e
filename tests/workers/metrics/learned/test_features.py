import numpy as np
import pytest

from helpers.builders import captions_with_references
from service.contract.errors import MetricFailed, UnknownMetric
from workers.metrics import postgen
from workers.metrics.learned import features
from workers.metrics.learned.features import FeatureScaling, FeatureTools

WORDS = ["a", "the", "man", "dog", "cat", "runs", "sits", "on", "grass", "big"]


def _words(captions):
    """A fake parser, for the real one needs files that not every machine has: words are objects."""
    return {caption: [[word] for word in caption.split()] for caption in captions}


def _words(captions):
    """A fake parser, for the real one needs files that not every machine has: words are objects."""
    return {caption: [[word] for word in caption.split()] for caption in captions}


@pytest.fixture
def tools(model, unused_jvm):
    needs = {"parse": _words}
    return FeatureTools(postgen.score_family, unused_jvm, model.frequencies, needs)


def test_a_feature_is_the_score_of_that_name(refs, tools):
    """In the order asked for; only CIDEr-D has other document frequencies than elsewhere."""
    captions, _ = captions_with_references(WORDS, 50, 1)
    rows = np.arange(50)
    names = {"bleu_3": "bleu", "cider_d": "cider_d", "spice": "spice", "bleu_1": "bleu"}
    found = features.measure_features(list(names), captions, refs, rows, tools)
    given = {"parse": _words, "idf": tools.frequencies}
    for place, (name, family) in enumerate(names.items()):
        expected = postgen.score_tokens(family, captions, refs, rows, tools.jvm, **given)
        np.testing.assert_array_equal(found.values[:, place], expected.captions[name])
        signature = expected.signatures[name]
        assert signature.replace(f"|{refs.signature.split('|')[0]}", "") == found.recipes[place]
        assert "refs:" not in found.recipes[place]


def test_captions_with_reference_sets_of_their_own_are_scored_against_them(tools):
    sets = [("a dog",), ("a cat sits",), ("a dog",)]
    found = features.measure_texts(["bleu_1"], ["a dog", "a cat", "the cat"], sets, "none", tools)
    np.testing.assert_allclose(found.values[:, 0], [1, np.exp(-0.5), 0], atol=1e-6)
    with pytest.raises(MetricFailed, match="found 1 and 3"):
        features.measure_texts(["bleu_1"], ["a dog"], sets, "none", tools)


@pytest.mark.parametrize("names", [[], ["bleu_1", "bleu_1"], ["bleu"], ["rouge_l", "bleu_1"]])
def test_other_features_are_refused(names, refs, tools):
    with pytest.raises(UnknownMetric, match="bleu_1, bleu_2, bleu_3, bleu_4, cider_d, meteor"):
        features.measure_features(names, ["a"], refs, np.arange(1), tools)


def test_features_are_scaled_by_what_was_seen_in_training_and_clipped():
    scaling = FeatureScaling.of(np.array([[0.0, 5.0, 1.0], [2.0, 5.0, 3.0], [1.0, 5.0, 2.0]]))
    found = scaling(np.array([[0.0, 5.0, 3.0], [1.5, 9.0, 9.0], [-7.0, 0.0, 2.0]]))
    assert found.tolist() == [[-1, 0, 1], [0.5, 0, 1], [-1, 0, 0]]
