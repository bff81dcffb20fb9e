from dataclasses import replace

import numpy as np
import pytest

from helpers import learned_models
from helpers.builders import captions_with_references
from service.contract.errors import MetricFailed, MetricUnavailable
from workers.metrics import postgen
from workers.metrics.learned import features
from workers.metrics.learned.features import FeatureTools

WORDS = ["a", "the", "man", "dog", "cat", "runs", "sits", "on", "grass", "big"]
CAPTIONS, _ = captions_with_references(WORDS, 50, 1)


def _score(model, refs, jvm, captions=CAPTIONS, rows=None, **options):
    rows = np.arange(len(captions)) if rows is None else np.array(rows)
    return postgen.score_tokens("nneval", captions, refs, rows, jvm, model=model, **options)


def test_a_score_is_what_the_network_makes_of_the_features(model, refs, unused_jvm):
    """Caption by caption, with dot products; the mean of all."""
    found = _score(model, refs, unused_jvm)
    tools = FeatureTools(postgen.score_family, unused_jvm, model.frequencies)
    rows = features.measure_features(model.features, CAPTIONS, refs, np.arange(50), tools).values
    for value, row in zip(found.captions["nneval"], rows, strict=True):
        expected = learned_models.human(model, dict(zip(model.features, row, strict=True)))
        assert value == pytest.approx(expected, rel=1e-12)
    assert found.corpus == {"nneval": pytest.approx(np.mean(found.captions["nneval"]))}
    assert np.ptp(found.captions["nneval"]) > 0.01


def test_a_part_gets_the_same_digits(model, refs, unused_jvm):
    whole = _score(model, refs, unused_jvm).captions["nneval"]
    rows = [5, 3, 49, 0]
    part = _score(model, refs, unused_jvm, [CAPTIONS[row] for row in rows], rows)
    np.testing.assert_array_equal(part.captions["nneval"], whole[rows])


def test_features_computed_in_another_way_are_refused(model, refs, unused_jvm):
    other = replace(model, recipes=("bleu_1|tok:none|reflen:closest|v:0", *model.recipes[1:]))
    with pytest.raises(MetricFailed, match=r"trained with bleu_1.*v:0, here there is .*v:1"):
        _score(other, refs, unused_jvm)


def test_a_model_of_another_tokenizer_says_which_it_takes(model, refs, unused_jvm):
    with pytest.raises(MetricUnavailable, match=r"tokenizer 'ptb', found .* 'none'; ask for 'ptb'"):
        _score(replace(model, tokenizer="ptb"), refs, unused_jvm)


@pytest.mark.parametrize("name", ["wmd", "spice"])
def test_what_is_wanting_is_said(model, refs, unused_jvm, name):
    with pytest.raises(MetricUnavailable, match=f"needs what {name} does"):
        _score(replace(model, features=("bleu_1", "bleu_4", name)), refs, unused_jvm)
    with pytest.raises(MetricUnavailable, match="needs a model"):
        _score(None, refs, unused_jvm)
