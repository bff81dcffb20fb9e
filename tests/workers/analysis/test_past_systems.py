"""Past systems: the chances of images, how hard these are, and the order that follows."""

import numpy as np
import pytest

from helpers.random_statistics import statistics
from workers.analysis import image_order, past_systems
from workers.analysis.image_order import ImageOrder

IMAGES = 600


def _systems(count, noise, seed=0):
    """CIDEr-D of systems that differ by `noise` from what an image is worth."""
    rng = np.random.default_rng(seed)
    worth = rng.exponential(size=len(noise))
    return worth, [{"cider_d": worth + noise * rng.normal(size=len(noise))} for _ in range(count)]


def test_chances_are_in_proportion_to_the_odds_and_at_most_one():
    """Of 4 images, 3: the first is certain, and so is then the second; one of two alike is left."""
    found = past_systems.compute_chances(np.array([10.0, 4.0, 1.0, 1.0]), 3)
    assert found == pytest.approx([1, 1, 0.5, 0.5])
    found = past_systems.compute_chances(np.array([2.0, 1.0, 1.0]), 1)
    assert found == pytest.approx([0.5, 0.25, 0.25])


@pytest.mark.parametrize("images", [1, 7, 400, 599])
def test_chances_add_up_to_the_images(images):
    odds = np.random.default_rng(1).lognormal(size=IMAGES)
    found = past_systems.compute_chances(odds, images)
    assert found.sum() == pytest.approx(images)
    below = found < 1
    assert found[below] / odds[below] == pytest.approx((found / odds)[below].max())


def test_even_odds_have_the_information_of_a_simple_draw():
    """Up to the same factor: n N / (N - n)."""
    found = [past_systems.measure_information(np.ones(1000), n) for n in (100, 500, 900)]
    simple = [n * 1000 / (1000 - n) for n in (100, 500, 900)]
    assert np.array(found) / found[0] == pytest.approx(np.array(simple) / simple[0])


def test_images_are_as_hard_as_systems_are_bad_at_them_in_the_mean():
    _, systems = _systems(6, np.full(IMAGES, 0.3))
    found = past_systems.summarise_systems({"cider_d": systems}).difficulty["cider_d"]
    mean = np.mean([each["cider_d"] for each in systems], axis=0)
    assert found.column == pytest.approx((mean - mean.mean()) / mean.std(), abs=1e-6)
    assert found.systems == 6


def test_images_on_which_systems_differ_are_drawn_more_often():
    """Of noise that is .2 or .8: the odds' even part aside, up to four times as often."""
    noise = np.where(np.arange(IMAGES) % 2, 0.8, 0.2)
    _, systems = _systems(60, noise)
    odds = past_systems.summarise_systems({"cider_d": systems}).odds
    assert odds.mean() == pytest.approx(1)
    assert odds.min() > past_systems._EVEN
    uneven = odds - past_systems._EVEN
    ratio = uneven[noise > 0.5].mean() / uneven[noise < 0.5].mean()
    assert 3 < ratio < 4


def test_a_few_systems_say_less_of_one_image_than_many():
    noise = np.full(IMAGES, 0.5)
    spread = [
        past_systems.summarise_systems({"cider_d": _systems(count, noise)[1]}).odds.std()
        for count in (4, 12, 60)
    ]
    assert spread[2] < spread[1]
    assert spread[0] < 1.5 * spread[1], "four are drawn towards their neighbours"


def test_too_few_systems_tell_nothing():
    _, systems = _systems(4, np.full(IMAGES, 0.5))
    assert past_systems.summarise_systems({"cider_d": systems[:3]}) is None
    assert past_systems.summarise_systems({}) is None
    bleu = [statistics("bleu", IMAGES, seed) for seed in range(3)]
    found = past_systems.summarise_systems({"bleu": bleu, "cider_d": systems})
    assert set(found.difficulty) == {"cider_d"}


def test_systems_that_are_all_the_same_leave_the_odds_even():
    same = [statistics("bleu", IMAGES)] * 5
    found = past_systems.summarise_systems({"bleu": same})
    assert found.odds == pytest.approx(np.ones(IMAGES))
    nothing = [{"cider_d": np.zeros(IMAGES)}] * 5
    found = past_systems.summarise_systems({"cider_d": nothing})
    assert (found.odds == 1).all()
    assert (found.difficulty["cider_d"].column == 0).all()


def test_families_count_alike_in_the_odds():
    """However many metrics they have."""
    _, cider = _systems(5, np.linspace(0.1, 1, IMAGES))
    bleu = [statistics("bleu", IMAGES, seed) for seed in range(5)]
    alone = [past_systems.summarise_systems({n: s}).odds for n, s in _named(bleu, cider)]
    squares = [((odds - past_systems._EVEN) ** 2) for odds in alone]
    both = past_systems.summarise_systems(dict(_named(bleu, cider))).odds
    expected = np.sqrt(np.mean([square / square.mean() for square in squares], axis=0))
    expected = expected / expected.mean()
    assert np.corrcoef(both, expected)[0, 1] > 0.97


def _named(bleu, cider):
    return [("bleu", bleu), ("cider_d", cider)]


@pytest.mark.long
def test_an_image_is_among_the_first_as_often_as_its_chance_says():
    odds = np.array([0.2, 0.5, 1.0, 1.3, 2.0] * 40)
    known = np.random.default_rng(3).normal(size=(200, 1))
    first = np.zeros(200)
    draws = 2000
    for seed in range(draws):
        first[image_order.draw_image_order(known, seed, odds)[:60]] += 1
    expected = past_systems.compute_chances(odds, 60)
    shares = [(first[odds == each] / draws).mean() for each in np.unique(odds)]
    assert shares == pytest.approx(np.unique(expected), abs=0.01)


def test_an_order_is_read_as_it_was_written(tmp_path):
    _, systems = _systems(4, np.full(IMAGES, 0.5))
    past = past_systems.summarise_systems({"cider_d": systems})
    known = np.random.default_rng(0).normal(size=(IMAGES, 4))
    for given in (past, None):
        image_order.write_image_order(tmp_path / "x", ImageOrder(np.arange(3), known, given))
        found = image_order.read_image_order(tmp_path / "x")
        assert (found.known == known).all()
        if given is None:
            assert found.past is None
            continue
        assert (found.past.odds == past.odds).all()
        assert found.past.difficulty["cider_d"].systems == 4
        column = found.past.difficulty["cider_d"].column
        assert (column == past.difficulty["cider_d"].column).all()
