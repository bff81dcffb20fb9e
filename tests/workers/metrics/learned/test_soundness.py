"""Models that say nothing of captions, or the wrong thing, are known by captions in the package."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import learned_models
from parity import learned_sets
from service.contract.errors import MetricFailed
from workers.metrics import frequencies, postgen, references
from workers.metrics.learned import features, soundness
from workers.metrics.learned.features import FeatureTools
from workers.metrics.learned.network import HumanClassifier
from workers.metrics.tokens import tokenize


def _wrong(model):
    return "; ".join(soundness.judge_model(model, postgen.score_family).wrong)


@pytest.fixture
def sound():
    return learned_models.by_chance(soundness.list_references())


def _weighted(model, scale, sign=1.0):
    """Every feature counts as much; logits are `scale` times the scaled features' sum."""
    weights = np.outer(np.full(len(model.features), sign * scale), [-0.5, 0.5])
    return replace(model, classifier=HumanClassifier([(weights, np.zeros(2))]))


def test_a_model_whose_scores_rise_with_every_feature_passes(sound):
    for model in (sound, _weighted(sound, 1.0)):
        soundness.check_model(model, postgen.score_family)
    means = soundness.judge_model(_weighted(sound, 1.0), postgen.score_family).means
    assert list(means) == list(soundness.KINDS)
    assert sorted(means.values(), reverse=True) == list(means.values())


def test_a_model_that_has_collapsed_is_refused_with_the_spread_that_was_found(sound):
    """It has the right order: ranks alone do not show it."""
    said = r"a spread of at least 0.05 from a caption of .* found \d\.?\d?e-0[78]\. Train it anew"
    with pytest.raises(MetricFailed, match=said):
        soundness.check_model(_weighted(sound, 1e-7), postgen.score_family)
    flat = replace(sound, classifier=HumanClassifier([(np.zeros((3, 2)), np.zeros(2))]))
    assert _wrong(flat).endswith("found 0")


def test_a_model_that_counts_features_against_a_caption_is_refused(sound):
    wrong = _wrong(_weighted(sound, 1.0, sign=-1.0))
    assert "no higher score of no words than of words at random, found 0.9" in wrong
    assert wrong.count("expected") == len(soundness.KINDS)


@pytest.mark.parametrize("score", [np.nan, 1.5, -0.1])
def test_a_score_that_is_no_probability_is_refused(sound, score):
    def classifier(values):
        return np.r_[score, np.full(len(values) - 1, 0.5)]

    assert _wrong(replace(sound, classifier=classifier)).startswith("expected scores from 0 to 1")


@pytest.fixture(scope="module")
def tools(jvm):
    counted = frequencies.collect_frequencies(
        references.index_tokens(soundness.list_references(), "ptb")
    )
    return FeatureTools(postgen.score_family, jvm, counted)


@pytest.mark.parametrize(
    "name",
    ["meteor", *(pytest.param(name, marks=pytest.mark.slow) for name in ("spice", "wmd"))],
)
def test_the_table_of_a_feature_is_what_is_computed(tools, name, request):
    """By Java, or by vectors of captions."""
    if name == "spice":
        tools = replace(tools, needs={"parse": request.getfixturevalue("parser").parse})
    elif name == "wmd":
        vectors = learned_sets.vectors(request.getfixturevalue("data"))
        tools = replace(tools, needs={"vectors": vectors})
    prepared = references.index_tokens(soundness.list_references(), "ptb")
    rows = np.tile(np.arange(prepared.images), len(soundness.KINDS))
    found = features.measure_features([name], soundness.list_captions(), prepared, rows, tools)
    expected = np.ravel(soundness._TABLE[name])
    np.testing.assert_allclose(found.values[:, 0], expected, atol=5.1e-5)


@pytest.mark.parametrize("tokenizer", ["ptb", "regex", "none"])
def test_every_tokenizer_leaves_the_captions_as_they_are(jvm, tokenizer):
    texts = [
        *soundness.list_captions(),
        *(text for image in soundness.list_references() for text in image),
    ]
    assert list(tokenize(texts, tokenizer, jvm)) == texts
