"""The shipped metric `accord`: what every learned metric has to do, and its edges."""

import numpy as np

from helpers import monotonicity
from workers.metrics import postgen, references
from workers.metrics.accord import caption_features, model
from workers.metrics.accord.caption_features import NAMES
from workers.metrics.family import ScoringInput
from workers.metrics.java.jvm import Jvm

JVM = Jvm()  # never asked


def _task(captions, people):
    """Captions, each with its own references."""
    prepared = references.prepare_references(people, "none", JVM)
    given = {"tokenizer": "none", "others": postgen.score_family}
    return ScoringInput(captions, np.arange(len(captions)), prepared, JVM, **given)


def test_what_is_repeated_cut_off_turned_round_or_shuffled_scores_less():
    people = ["a dog chases a cat across the yard", "the dog runs after the cat in a yard"]
    captions = [
        "a dog chases a cat in the yard",
        "a cat chases a dog in the yard",
        "a dog chases a",
        "a dog a dog a dog a dog",
        "chases the a in cat yard dog a",
    ]
    scored = postgen.score_family("accord", _task(captions, [people] * len(captions)))
    right, *wrong = scored.captions["accord"]
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
