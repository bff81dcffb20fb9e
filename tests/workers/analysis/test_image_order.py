"""The order in which images are decoded."""

import numpy as np
import pytest

from workers.analysis import image_order
from workers.inference.columns import ProbabilityColumns


def _known(images, seed=0):
    return image_order.standardise_columns(np.random.default_rng(seed).normal(size=(images, 4)))


@pytest.mark.parametrize("images", [1, 2, 15, 16, 17, 1000])
def test_every_image_comes_once(images):
    assert sorted(image_order.draw_image_order(_known(images), 3)) == list(range(images))


def test_any_first_images_hold_their_share_of_every_stratum():
    images = 63 * image_order.STRATA
    known = _known(images)
    strata = np.argsort(np.argsort(known.sum(axis=1))) // 63
    drawn = strata[image_order.draw_image_order(known, 5)]
    for first in range(1, images + 1):
        held = np.bincount(drawn[:first], minlength=image_order.STRATA)
        assert np.abs(held - first / image_order.STRATA).max() < 1, first


@pytest.mark.long
def test_every_image_is_as_likely_to_come_first_as_any_other():
    known = _known(40)
    places = np.array(
        [np.argsort(image_order.draw_image_order(known, seed)) for seed in range(4000)]
    )
    assert np.abs(places.mean(axis=0) - 19.5).max() < 4 * places.std() / np.sqrt(4000)


def test_the_order_is_that_of_its_seed():
    known = _known(100)
    assert (image_order.draw_image_order(known, 1) == image_order.draw_image_order(known, 1)).all()
    assert (image_order.draw_image_order(known, 1) != image_order.draw_image_order(known, 2)).any()


def _columns(logp, rank, caption_offsets, image_offsets):
    none = np.zeros((len(logp), 1), np.uint16), np.zeros((len(logp), 1), np.float32)
    given = np.array(logp, np.float32), np.array(rank, np.uint16)
    return ProbabilityColumns(*given, np.array(caption_offsets), np.array(image_offsets), *none)


def test_what_is_known_is_what_the_model_thinks_of_the_references():
    """Two images of two references each; of the first, both are certain and hit."""
    logp = np.log([1, 1, 1, 0.5, 0.25, 0.125, 0.125])
    columns = _columns(logp, [0, 0, 0, 0, 1, 3, 2], [0, 2, 3, 5, 7], [0, 2, 4])
    found = image_order.describe_images(columns)
    assert found == pytest.approx(np.array([[1.0] * 4, [-1.0] * 4]))


def test_a_reference_that_is_impossible_counts_as_the_worst():
    columns = _columns([-np.inf, -1, -5, -0.5], [3, 0, 1, 0], range(5), range(5))
    found = image_order.describe_images(columns)
    assert np.isfinite(found).all()
    assert found[0, 0] == found[2, 0] == found[:, 0].min()


def test_what_is_the_same_of_all_images_tells_nothing():
    assert (image_order.standardise_columns(np.full((5, 2), 3.0)) == 0).all()
