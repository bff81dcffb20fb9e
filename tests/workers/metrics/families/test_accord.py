"""The shipped metric `accord`: what every learned metric has to do, and its edges."""

from pathlib import Path

import numpy as np
import pytest

import ending
import monotone
from service.contract.errors import RunCanceled
from workers.metrics import postgen, references
from workers.metrics.accord import caption_features, model
from workers.metrics.accord.caption_features import NAMES
from workers.metrics.family import ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.learned import soundness

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


def test_it_passes_what_every_model_is_asked_and_no_kind_of_captions_has_the_score_of_the_next():
    found = soundness.judge_model(model.load_shipped_accord(), postgen.score_family)
    assert found.wrong == ()
    means = list(found.means.values())
    assert sorted(set(means), reverse=True) == means
    assert means[0] - means[-1] > 0.5


@pytest.mark.parametrize("image", PEOPLE)
def test_a_word_exchanged_scores_less(image):
    right = PEOPLE[image][1]
    words = right.split()
    wrong = [" ".join([*words[:at], "zebra", *words[at + 1 :]]) for at in range(len(words))]
    found, *less = _scores([right, *wrong], [PEOPLE[image]] * (len(wrong) + 1))
    assert max(less) < found


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
    monotone.check(shipped, len(NAMES))


HOSTILE = [
    "",
    " ",
    "...",
    "🐕",
    "\0",
    "ä ö ü",
    "a" * 9000,
    "a man " * 1500,
    "3\u00a01/2 cups",
    "é é",
]


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


def test_one_reference_is_enough_and_the_same_one_twice_is_no_less():
    caption = "a man rides a big wave"
    once, twice = _scores([caption] * 2, [PEOPLE["surfer"][:1], PEOPLE["surfer"][:1] * 2])
    assert 0 < once <= twice + 1e-9


def test_words_that_nobody_knows_count_where_a_reference_has_them():
    captions = ["a zorp rides a wave", "a blick rides a wave"]
    right, wrong = _scores(captions, [["the zorp rides a large wave"]] * 2)
    assert right > wrong > 0


def test_a_signature_names_the_model_and_the_tokenizer():
    found = postgen.score_family("accord", _task(["a dog"], [["a dog", "a cat"]]))
    model_of = f"model:{model.load_shipped_accord().digest[:12]}"
    assert found.signatures == {"accord": f"accord|refs:2|tok:none|{model_of}|v:2"}
    assert found.corpus == {"accord": found.captions["accord"][0]}


def test_progress_is_told_and_may_end_it():
    told = []
    task = _task(["a dog"] * 9, [["a dog"]] * 9, progress=lambda *at: told.append(at))
    postgen.score_family("accord", task)
    assert told == [(9, 9)] * 2  # of CIDEr-D, and of all features
    with pytest.raises(RunCanceled):
        postgen.score_family("accord", _task(["a dog"], [["a dog"]], progress=ending.ends))


def test_its_card_is_about_this_very_file():
    card = (Path(model.__file__).parent / "CARD.md").read_text("utf-8")
    assert model.load_shipped_accord().digest in card
    for name, weight in zip(NAMES, model.load_shipped_accord().weights, strict=True):
        assert f"| {name} | {weight:.2f} |" in card
    assert model.SHIPPED.stat().st_size < 2_000_000
