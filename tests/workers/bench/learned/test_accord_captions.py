"""Models of accord from captions alone. Oracles: the loss by its definition, in loops, and what the
recipe makes of the same contrasts.
"""

import math
from collections import Counter

import numpy as np
import pytest

from helpers import interruptions, synthetic_captions
from service.contract.errors import MetricFailed, RequestRefused, RunCanceled
from workers.bench.judging import distractors
from workers.bench.learned import accord_contrasts, accord_training
from workers.bench.learned.accord_contrasts import Contrast
from workers.bench.learned.accord_training import AccordRecipe, AccordTrainingOptions
from workers.metrics import postgen
from workers.metrics.accord import stems
from workers.metrics.java.jvm import Jvm
from workers.metrics.learned import soundness

JVM = Jvm()  # never asked
FEW = AccordRecipe(most=30)


def _asked(**more):
    given = {"recipe": FEW, "inputs": {"dataset ours/test": "sha256:0"}} | more
    return AccordTrainingOptions(JVM, postgen.score_family, "none", **given)


def _named(images):
    return {f"{number}.jpg": said for number, said in enumerate(images)}


@pytest.fixture(scope="module")
def learned():
    return accord_training.learn_from_captions(_named(synthetic_captions.images(60)), _asked())


def test_it_is_what_the_recipe_makes_of_the_contrasts_and_the_six_distractors(learned):
    images = synthetic_captions.images(60)
    six = [
        Contrast(
            pair.category,
            *((pair.a, pair.b) if pair.preferred == "a" else (pair.b, pair.a)),
            pair.references,
        )
        for pair in distractors.make_distractors(images, 0)
    ]
    expected = accord_training.learn_accord(images, six, _asked()).model
    np.testing.assert_array_equal(learned.weights, expected.weights)
    assert learned.middle == expected.middle
    assert learned.about["contrasts"] == expected.about["contrasts"]
    assert {"replace-person", "share-scene"} <= learned.about["contrasts"].keys()


def test_its_card_says_what_it_was_learned_from_and_what_it_puts_right(learned):
    card = learned.card
    training = card["training"]
    assert (card["objective"], training["images"], card["tokenizer"]) == ("contrast", 60, "none")
    assert card["stems"] == stems.ENGLISH
    assert training["inputs"] == {"dataset ours/test": "sha256:0"}
    assert card["right"].keys() == training["contrasts"].keys()
    assert np.mean(list(card["right"].values())) > 0.8


def test_another_language_has_no_english_words_stems_or_distractors(monkeypatch):
    monkeypatch.setattr(accord_contrasts, "_SMALL", 6)  # of 33 words
    found = accord_training.learn_from_captions(_named(synthetic_captions.invented(60)), _asked())
    assert found.language.stems == stems.WRITTEN
    assert set(found.about["contrasts"]) == {
        *("near", "further", "word", "swapped", "truncated", "repeated", "shuffled")
    }
    assert found.language.stem("sgodu") == "sgodu"
    assert np.mean(list(found.about["right"].values())) > 0.8


def test_few_images_are_refused_with_their_number():
    people = _named(synthetic_captions.images(60)) | {"lone.jpg": ("a dog",)}
    few = dict(list(people.items())[11:])
    with pytest.raises(RequestRefused, match=r"at least 50 images with two captions .* found 49"):
        accord_training.learn_from_captions(few, _asked())


def test_of_many_images_some_are_drawn_whatever_their_order(monkeypatch):
    monkeypatch.setattr(accord_training, "MOST", 60)
    people = _named(synthetic_captions.images())
    found = accord_training.TokenizedImages.of(people, _asked())
    turned = accord_training.TokenizedImages.of(dict(reversed(people.items())), _asked())
    assert len(found.images) == 60
    assert sorted(found.texts) == sorted(turned.texts)


def test_a_model_that_says_nothing_is_refused_with_the_figures(monkeypatch):
    """Here any, since no spread is as large as what is asked for."""
    monkeypatch.setattr(soundness, "SPREAD", 2.0)
    with pytest.raises(MetricFailed, match=r"says nothing of captions: expected a spread of at"):
        accord_training.learn_from_captions(
            _named(synthetic_captions.images(50)), _asked(recipe=AccordRecipe(most=5))
        )


def test_progress_may_end_it():
    with pytest.raises(RunCanceled):
        accord_training.learn_from_captions(
            _named(synthetic_captions.images(60)),
            _asked(report=lambda _, *at: interruptions.ends(*at)),
        )


def _drawn(images, seed):
    corpus = accord_contrasts.ContrastCorpus.of(images)
    return list(accord_contrasts.make_contrasts(corpus, seed=seed))


@pytest.fixture(scope="module")
def made():
    images = synthetic_captions.images()
    return images, _drawn(images, 0)


def test_each_kind_exchanges_keeps_swaps_cuts_or_takes_another_images_words(made):
    """Of a caption that is scored with the others of its image. A word is exchanged for one that
    none of them has.
    """
    images, found = made
    assert set(accord_contrasts.KINDS) == {each.kind for each in found}
    sets, everything = set(map(frozenset, images)), {said for image in images for said in image}
    for each in found:
        assert each.wrong != each.right
        assert each.right not in each.references
        assert {each.right, *each.references} in sets
        right, wrong = each.right.split(), each.wrong.split()
        if each.kind in accord_contrasts.EXCHANGED:
            ((_, new),) = [pair for pair in zip(right, wrong, strict=True) if pair[0] != pair[1]]
            assert new not in " ".join([each.right, *each.references]).split()
        if each.kind in {"near", "further"}:
            assert each.wrong in everything
        if each.kind in {"swapped", "shuffled"}:
            assert Counter(right) == Counter(wrong)
        if each.kind == "swapped":
            assert sum(one != other for one, other in zip(right, wrong, strict=True)) == 2
        if each.kind == "truncated":
            assert right[: len(wrong)] == wrong
            assert 2 <= len(wrong) < len(right)
        if each.kind == "repeated":
            assert len(set(wrong)) <= len(set(right))
            assert max(Counter(wrong).values()) > 1


def test_draws_are_the_same_for_a_seed_and_others_for_another(made):
    images, found = made
    assert _drawn(images, 0) == found != _drawn(images, 1)
    counts = Counter(each.kind for each in accord_contrasts.draw_contrasts(found, 7, 0))
    assert set(counts.values()) == {7}


def test_weights_make_the_loss_least_and_none_is_negative():
    rng = np.random.default_rng(1)
    differences = rng.normal([0.5, -0.3, 0.1, 0.0], [1, 2, 0.1, 0.5], (300, 4))
    kinds = np.array(["often"] * 250 + ["seldom"] * 50)

    def loss(weights):
        spread = differences.std(axis=0)
        total = 0.1 / 2 * sum((weights * spread) ** 2)
        for row, kind in zip(differences, kinds, strict=True):
            count = 250 if kind == "often" else 50
            total += math.log1p(math.exp(-float(row @ weights))) / count / 2
        return total

    found = accord_training.fit_weights(differences, kinds, beta=0.1)
    assert found.min() == 0 == found[1]
    least = loss(found)
    for place in range(4):
        for step in (-1e-3, 1e-3):
            moved = found.copy()
            moved[place] += step
            assert moved[place] < 0 or loss(moved) > least
