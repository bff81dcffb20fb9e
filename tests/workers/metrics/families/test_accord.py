"""The shipped metric `accord`: what every learned metric has to do, and its edges."""

from pathlib import Path

import numpy as np
import pytest

from helpers import monotonicity
from workers.metrics import postgen, references
from workers.metrics.accord import caption_features, model
from workers.metrics.accord.caption_features import NAMES
from workers.metrics.family import ScoringInput
from workers.metrics.java.jvm import Jvm

JVM = Jvm()  # never asked
PEOPLE = {
    "surfer": [
        "a man riding a wave on top of a surfboard",
        "a surfer rides a large wave in the ocean",
        "a person on a surfboard in the water",
        "a man is surfing a big wave",
    ],
    "dogs": [
        "two brown dogs run through tall grass",
        "a pair of dogs running in a green field",
        "two dogs chase each other in the grass",
        "brown dogs playing in a meadow",
    ],
    "kitchen": [
        "a kitchen with a white stove and a refrigerator",
        "a small kitchen has white appliances and wooden cabinets",
        "the kitchen contains a refrigerator and a stove",
        "a clean kitchen with wooden cabinets",
    ],
}
# A reference, a paraphrase by another person, a caption of a like image, gibberish, nothing.
DESCENDING = {
    "surfer": [
        "a surfer rides a large wave in the ocean",
        "a male surfer catching a wave in the sea",
        "a white sailboat floats on the calm ocean",
        "of purple the on seven a",
        "a a a a a a",
        "",
    ],
    "dogs": [
        "two dogs chase each other in the grass",
        "two dogs are running across a grassy field",
        "a brown dog jumps over a fence",
        "under of with purple the the",
        "the the the the",
        "",
    ],
    "kitchen": [
        "a clean kitchen with wooden cabinets",
        "a white kitchen with wood cabinets and a fridge",
        "a bathroom with a white sink and a toilet",
        "and seven a on a of",
        "with with with",
        "",
    ],
}


def _task(captions, people, **options):
    """Captions, each with its own references."""
    prepared = references.prepare_references(people, "none", JVM)
    given = {"tokenizer": "none", "others": postgen.score_family} | options
    return ScoringInput(captions, np.arange(len(captions)), prepared, JVM, **given)


def _scores(captions, people):
    return postgen.score_family("accord", _task(captions, people)).captions["accord"]


@pytest.mark.parametrize("image", PEOPLE)
def test_better_captions_score_more_and_the_scores_are_spread(image):
    captions = DESCENDING[image]
    reference, paraphrase, other, *poor, empty = _scores(captions, [PEOPLE[image]] * len(captions))
    assert 1 >= reference > paraphrase > other > max(poor) >= min(poor) >= empty == 0
    assert reference - other > 0.5
    assert paraphrase - other > 0.1


def test_what_is_repeated_cut_off_turned_round_or_shuffled_scores_less():
    people = ["a dog chases a cat across the yard", "the dog runs after the cat in a yard"]
    captions = [
        "a dog chases a cat in the yard",
        "a cat chases a dog in the yard",
        "a dog chases a",
        "a dog a dog a dog a dog",
        "chases the a in cat yard dog a",
    ]
    right, *wrong = _scores(captions, [people] * len(captions))
    assert max(wrong) < right


def test_no_score_falls_where_a_feature_rises_and_all_are_in_0_to_1():
    shipped = model.load_shipped_accord()
    assert shipped.weights.min() >= 0
    assert shipped.weights.max() > 0
    monotonicity.check(shipped, len(NAMES))


HOSTILE = ["", " ", "...", "🐕", "\0", "ä ö ü", "a" * 9000, "a man " * 1500, "3\u00a01/2 cups"]


def test_features_of_whatever_captions_and_references_are_in_0_to_1():
    captions = [caption for caption in HOSTILE for _ in HOSTILE]
    people = [[other] for _ in HOSTILE for other in HOSTILE]
    captions, people = [*captions, *HOSTILE], [*people, *([HOSTILE] * len(HOSTILE))]
    found = caption_features.measure_features(
        _task(captions, people), model.load_shipped_accord().language
    )
    assert np.isfinite(found).all()
    assert found.min() >= 0
    assert found.max() <= 1


def test_its_card_is_about_this_very_file():
    card = (Path(model.__file__).parent / "CARD.md").read_text("utf-8")
    assert model.load_shipped_accord().digest in card
    for name, weight in zip(NAMES, model.load_shipped_accord().weights, strict=True):
        assert f"| {name} | {weight:.2f} |" in card
    assert model.SHIPPED.stat().st_size < 2_000_000
