"""Columns of two real training runs on Flickr8k, with the greedy captions they led to."""

import numpy as np
import pytest

from oracles import pregen as oracle
from workers.metrics import pregen


@pytest.fixture(scope="module", params=["init", "merge"])
def run(data, request):
    return np.load(data / "runs" / f"{request.param}.npz")


def test_all_672_of_a_real_checkpoint_agree_with_the_definitions(run):
    columns = (run["logp"][7], run["rank"][7], run["caption_offsets"], run["image_offsets"])
    found, expected = pregen.scores(*columns), oracle.scores(*columns)
    for name, value in expected.items():
        if np.isinf(value) or value == 0:
            assert found[name] == value, name
        else:
            assert found[name] == pytest.approx(value, rel=1e-9), name


def test_perplexity_follows_cider_within_a_run(run):
    """SCIENCE section 6: Spearman .97 / .98 within a run."""
    perplexity = [
        pregen.scores(
            logp, rank, run["caption_offsets"], run["image_offsets"], names=["perplexity"]
        )["perplexity"]
        for logp, rank in zip(run["logp"], run["rank"], strict=True)
    ]
    trained = run["epoch"] > 0.4
    order = np.argsort(np.argsort(-np.array(perplexity)[trained]))
    truth = np.argsort(np.argsort(run["cider_d"][trained]))
    n = len(order)
    spearman = 1 - 6 * ((order - truth) ** 2).sum() / (n * (n * n - 1))
    assert spearman > 0.9
