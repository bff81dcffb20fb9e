"""Oracle: counts and the formula of pointwise mutual information, by hand."""

import numpy as np
import pytest

from workers.bench.learned.accord_language import learn_language
from workers.metrics.accord.stems import stem_word

IMAGES = [
    ["a red dog runs", "the dogs ran on grass", "a dog on the grass"],
    ["a red cat sits", "the cat sits on grass", "a cat on the grass"],
    ["a blue boat floats", "the boat floats on water", "a boat on the water"],
    ["a blue ship floats", "the ship floats on water", "a ship on the water"],
]


@pytest.fixture(scope="module")
def learned():
    return learn_language(IMAGES, "none")


@pytest.mark.parametrize(
    ("forms", "other"),
    [
        (["dog", "dogs"], "dock"),
        (["ride", "rides", "riding"], "red"),
        (["run", "runs", "running", "ran"], "rug"),
        (["man", "men"], "woman"),
        (["child", "children"], "chill"),
        (["puppy", "puppies"], "puppet"),
        (["bench", "benches"], "beach"),
        (["play", "plays", "played", "playing"], "plate"),
        (["is", "are", "being"], "a"),
        (["grass"], "gras"),
        (["bus"], "bu"),
    ],
)
def test_the_forms_of_a_word_are_one_and_other_words_are_others(forms, other):
    assert len(set(map(stem_word, forms))) == 1
    assert stem_word(other) != stem_word(forms[0])


@pytest.mark.parametrize("word", ["", "3", "ab", "s", "éé", "3-d", "🐕", "ing", "sing"])
def test_what_is_no_form_of_a_word_is_left_as_it_is(word):
    assert stem_word(word) == word


def test_words_weigh_by_the_share_of_images_that_hold_them(learned):
    assert learned.weigh("a") == pytest.approx(0, abs=1e-12)
    assert learned.weigh("red") == pytest.approx(np.log(4 / 2))
    assert learned.weigh("dog") == learned.weigh("zorp") == pytest.approx(np.log(4))
    assert "dog" not in learned.words  # of one image: as rare as a new word


def test_words_in_like_places_have_like_vectors(learned):
    float_, sit, water, red = learned.vectors_of([stem_word("floats"), "sit", "water", "red"])
    assert np.linalg.norm(water) == pytest.approx(1, abs=1e-3)
    assert float_ @ water > max(sit @ water, red @ water)
    assert not learned.vectors_of(["zorp"]).any()


def test_two_words_are_odd_beside_each_other_unless_three_images_have_them(learned):
    odd = learned.odd(["the water on a boat", "on the", ""])
    assert odd == {("the", "water"), ("water", "on"), ("on", "a"), ("a", "boat")}
    three = learn_language([["a dog"], ["a dog"], ["a dog", "a cat"], ["a cat"]], "none")
    assert three.odd(["a dog", "a cat"]) == {("a", "cat")}
    assert learned.odd(["", "word"]) == frozenset()
