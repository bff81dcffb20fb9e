"""Critical values, against a published table and against random walks."""

import math

import numpy as np
import pytest

from workers.analysis import looks as spending
from workers.analysis import past_systems


def _walks(looks, images, count, rng):
    """Standardised differences between the mean of the first n images and that of all, of
    populations that are Gaussian.
    """
    population = rng.normal(size=(count, images))
    population -= population.mean(axis=1, keepdims=True)
    means = np.cumsum(population, axis=1)[:, np.array(looks) - 1] / looks
    return means / np.sqrt(1 / np.array(looks) - 1 / images)


@pytest.mark.long
@pytest.mark.parametrize("looks", [range(50, 400, 50), [40, 41, 200, 395], [399]])
def test_as_many_walks_leave_their_limits_as_is_allowed(looks):
    looks, images, error = list(looks), 400, 0.2
    limits = spending.compute_critical_values(looks, images, error)
    walks = _walks(looks, images, 20_000, np.random.default_rng(1))
    left = np.cumsum(np.abs(walks) > limits, axis=1) > 0
    for look, share in zip(looks, left.mean(axis=0), strict=True):
        assert share == pytest.approx(error * look / images, abs=0.008), look


@pytest.mark.long
def test_as_many_uneven_draws_leave_their_limits_as_is_allowed():
    """Images whose values spread as their odds say, drawn by Poisson's rule: each image has a
    number, and is seen once its chance has passed it. Sums are weighted by chances (Horvitz and
    Thompson 1952).
    """
    looks, images, error = [100, 200, 300, 380], 400, 0.2
    rng = np.random.default_rng(2)
    odds = rng.lognormal(sigma=0.6, size=images)
    limits = spending.compute_critical_values(looks, images, error, odds)
    values, numbers = odds * rng.normal(size=(20_000, images)), rng.random((20_000, images))
    left = np.zeros(20_000, bool)
    for look, limit in zip(looks, limits, strict=True):
        chances = past_systems.compute_chances(odds, look)
        drawn = (values * (numbers < chances) / chances).sum(axis=1) - values.sum(axis=1)
        spread = np.sqrt((odds**2 * (1 / chances - 1)).sum())
        left |= np.abs(drawn) / spread > limit
        assert left.mean() == pytest.approx(error * look / images, abs=0.008), look


def test_even_odds_are_a_uniform_order():
    looks = [128, 256, 384, 900]
    uniform = spending.compute_critical_values(looks, 1000, 0.05)
    even = spending.compute_critical_values(looks, 1000, 0.05, np.ones(1000))
    assert even == pytest.approx(uniform)


def test_two_looks_are_those_of_pococks_table():
    """Two looks, the second with twice the information, both at 2.178: 5 % are left at one of them
    (Pocock 1977). This is where our spending says the same.
    """
    share = math.erfc(2.178 / math.sqrt(2)) / 0.05  # spent by the first
    second = (2 * share - 1) / share
    images = 1_000_000
    looks = [round(share * second * images), round(second * images)]
    limits = spending.compute_critical_values(looks, images, 0.05 / second)
    assert limits == pytest.approx([2.178, 2.178], abs=0.002)


def test_a_look_needs_no_knowledge_of_later_ones():
    looks = [128, 256, 384, 512]
    assert spending.compute_critical_values(looks, 1000)[:2] == spending.compute_critical_values(
        looks[:2], 1000
    )


def test_looks_that_are_the_same_but_for_rounding_count_once():
    images = 10_000_000
    limits = spending.compute_critical_values([5_000_000, 5_000_001], images)
    assert limits[0] == limits[1]
