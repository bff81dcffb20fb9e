"""The model in the package."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest

from service.contract.metrics import families
from workers.metrics import postgen, references
from workers.metrics.learned import nneval, soundness
from workers.metrics.tokens import tokenize

CARD = (Path(nneval.__file__).parent / "CARD.md").read_text("utf-8")


@pytest.fixture(scope="module")
def shipped():
    return nneval.load_shipped_nneval()


def test_it_needs_no_asset_and_little_room(shipped):
    assert set(shipped.features) <= set(families.list_usual_features())
    assert Path(nneval.__file__).with_name("nneval.safetensors").stat().st_size < 3_000_000


def test_its_card_is_about_this_very_file(shipped):
    assert shipped.digest in CARD
    for value in shipped.about["kendall_c"]["all features"]:
        assert f"{value:.4f}" in CARD
    for name, (stopping, test) in shipped.about["kendall_c"].items():
        assert f"| {name} | {stopping:.4f} | {test:.4f} |" in CARD
    for kind, mean in soundness.judge_model(shipped, postgen.score_family).means.items():
        assert f"| {kind} | {mean:.3f} |" in CARD


def test_its_tasks_have_keys_of_their_own(shipped):
    assert shipped.digest.startswith(families.list_learned_families()["nneval"].shipped)


def test_no_feature_that_is_alone_at_its_highest_or_lowest_leaves_the_range(shipped):
    corners = np.array(list(product([-1.0, 0.0, 1.0], repeat=len(shipped.features))))
    scores = shipped.classifier(corners)
    assert scores.min() >= 0
    assert scores.max() <= 1


def test_its_score_rises_where_all_features_do_and_its_card_says_that_one_alone_may_lower_it(
    shipped,
):
    count, grid = len(shipped.features), np.linspace(-1, 1, 21)
    assert (np.diff(shipped.classifier(np.tile(grid[:, None], count))) > 0).all()
    last = shipped.features.index("bleu_4")
    rising = np.random.default_rng(0).uniform(-1, 1, (400, 1, count)).repeat(len(grid), axis=1)
    rising[:, :, last] = grid
    scores = shipped.classifier(rising.reshape(-1, count)).reshape(400, -1)
    falls = (np.maximum.accumulate(scores, axis=1) - scores).max()
    assert f"BLEU-4 alone may lower it, by up to {falls:.1f}" in CARD


def test_its_features_are_computed_as_it_was_trained(shipped, jvm):
    """METEOR by Java, BLEU and CIDEr-D: or it would refuse."""
    refs = references.prepare_references([["A man riding a wave.", "A surfer."]], "ptb", jvm)
    tokens = tokenize(["A man on a wave.", "Two dogs eat a pizza."], "ptb", jvm)
    found = postgen.score_tokens("nneval", tokens, refs, np.zeros(2, int), jvm, model=shipped)
    good, poor = found.captions["nneval"]
    assert good > poor
