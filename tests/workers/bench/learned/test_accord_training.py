"""Oracle: the loss by its definition, in loops."""

import math
from collections import Counter

import numpy as np
import pytest

from helpers import synthetic_captions
from workers.bench.learned import accord_contrasts, accord_training
from workers.bench.learned.accord_training import AccordTrainingOptions
from workers.metrics import postgen
from workers.metrics.accord import model
from workers.metrics.java.jvm import Jvm

FEW = accord_training.AccordRecipe(most=30)


@pytest.fixture(scope="module")
def made():
    images = synthetic_captions.images()
    return images, list(
        accord_contrasts.make_contrasts(accord_contrasts.ContrastCorpus.of(images), seed=0)
    )


def test_every_kind_of_contrast_is_made_of_a_caption_and_scored_with_the_others(made):
    images, found = made
    assert set(accord_contrasts.KINDS) == {each.kind for each in found}
    sets = set(map(frozenset, images))
    for each in found:
        assert each.wrong != each.right
        assert each.right not in each.references
        assert {each.right, *each.references} in sets


@pytest.mark.parametrize("kind", accord_contrasts.EXCHANGED)
def test_one_word_is_exchanged_for_one_that_no_caption_of_the_image_has(made, kind):
    for each in (each for each in made[1] if each.kind == kind):
        pairs = zip(each.right.split(), each.wrong.split(), strict=True)
        ((right, wrong),) = [pair for pair in pairs if pair[0] != pair[1]]
        assert wrong not in " ".join([each.right, *each.references]).split()
        assert right != wrong


def test_other_kinds_keep_swap_cut_or_take_another_images_words(made):
    images, found = made
    everything = {said for image in images for said in image}
    for each in found:
        right, wrong = each.right.split(), each.wrong.split()
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
    assert (
        list(accord_contrasts.make_contrasts(accord_contrasts.ContrastCorpus.of(images), seed=0))
        == found
    )
    assert (
        list(accord_contrasts.make_contrasts(accord_contrasts.ContrastCorpus.of(images), seed=1))
        != found
    )
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


def test_a_metric_is_learned_written_and_read(made, tmp_path):
    images, _ = made
    asked = AccordTrainingOptions(Jvm(), postgen.score_family, "none", FEW)
    learned = accord_training.learn_accord(images, [], asked).model
    assert (learned.weights >= 0).all()
    path = tmp_path / "model.safetensors"
    model.write_accord(path, learned)
    found = model.read_accord(path)
    np.testing.assert_array_equal(found.weights, learned.weights)
    assert found.about["images"] == len(images)
    chosen = accord_training.choose_contrasts(images, [], FEW)
    right, wrong = accord_training.measure_contrasts(chosen, found.language, asked)
    assert np.mean(found(right) > found(wrong)) > 0.9
