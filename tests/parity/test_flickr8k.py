"""Captioners trained here, on real photos' features, judged by the published scorer."""

import numpy as np
import pytest
from scipy import stats

from parity import flickr8k
from workers.inference import decoding
from workers.lab import training_runs
from workers.lab.training import PAPER

GREEDY = decoding.DecodingOptions(beam=1, min_words=0, max_words=20)
EPOCHS = 8


@pytest.fixture(scope="module")
def bundle(data, tmp_path_factory):
    return flickr8k.make_bundle(data, tmp_path_factory.mktemp("flickr8k"))


@pytest.mark.slow
@pytest.mark.parametrize("architecture", ["init", "merge"])
def test_a_trained_captioner(bundle, architecture, capsys):
    run = training_runs.prepare_training(
        bundle,
        architecture=architecture,
        sizes={"cell": "gru", "size": 256},
        at_least=5,
        splits=("train", "val"),
        device="cpu",
    )
    rows = []
    for epoch in run.train(epochs=EPOCHS, batch=PAPER["init"].batch, seed=0):
        split = flickr8k.Split(bundle, "test", epoch.model)
        scores = split.pregen(["perplexity", "mean_max_normcount_prefix0"])
        rows.append((split.cider_of(GREEDY), *scores.values()))
    _the_walk_equals_columns(split)
    _bf16_decides_as_fp32(split)
    cider, perplexity, best = np.array(rows[1:]).T
    beam = split.cider_of(decoding.DecodingOptions())
    with capsys.disabled():
        print(
            f"\n{architecture}: greedy CIDEr-D by epoch {np.round(cider, 3).tolist()}, "
            f"beam 3 after the last {beam:.3f}; over the run's checkpoints "
            f"Spearman(-perplexity) {stats.spearmanr(-perplexity, cider).statistic:+.2f}, "
            f"Spearman(best prefix) {stats.spearmanr(best, cider).statistic:+.2f}"
        )
    assert max(cider) >= 0.33
    assert beam > cider[-1]


def _the_walk_equals_columns(split):
    columns = split.columns()
    prefixes = split.prefixes()
    offsets = columns.caption_offsets
    for caption, prefix in enumerate(prefixes):
        hits = columns.rank[offsets[caption] : offsets[caption + 1]] == 0
        assert prefix == (hits.argmin() if not hits.all() else len(hits)), caption


def _bf16_decides_as_fp32(split):
    exact, half = split.columns(), split.columns(flickr8k.BF16)
    np.testing.assert_array_equal(exact.rank == 0, half.rank == 0)
    assert np.abs(exact.logp - half.logp).max() < 0.1


@pytest.mark.slow  # made-up captions: workers/inference/test_scoring.py
def test_real_captions_are_scored_end_to_end_by_an_untrained_model(bundle):
    """The ordinary run's small variant: real bundle, real features, no training."""
    run = training_runs.prepare_training(
        bundle,
        architecture="merge",
        sizes={"cell": "lstm", "size": 16},
        at_least=5,
        splits=("val", "test"),
        device="cpu",
    )
    (epoch,) = run.train(epochs=0, batch=None, seed=0)
    split = flickr8k.Split(bundle, "test", epoch.model)
    scores = split.pregen()
    assert scores["sum_join_count_none"] == len(split.encoded.tokens)
    words = len(epoch.model.description.vocabulary)
    assert scores["geomean_join_pplx_none"] == pytest.approx(words, rel=0.05)
