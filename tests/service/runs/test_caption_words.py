"""Words of captions, held against a plain implementation of their definition."""

import random
from dataclasses import astuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import plain_words
from service.runs import caption_words

SAID = ["a", "A", "the", "on", "red", "Red", "bus", "dog's", "dog\u2019s", "two-way", "-", "7", "²"]
SAID += ["ÉTÉ", "Straße", "犬", "Σας", "ΣΑΣ", "İ", "snake_case", "<b>", "=1+1", "a\u0301", "\u202e"]
TEXTS = st.lists(st.sampled_from(SAID), max_size=8).map(" ".join) | st.text(max_size=30)


@given(TEXTS, st.lists(TEXTS, max_size=5))
def test_words_are_those_of_a_plain_implementation(caption, references):
    found = caption_words.compare_words(caption, references)
    assert astuple(found) == plain_words.compare(caption, references)


def test_of_equally_near_references_the_first_is_shown():
    found = caption_words.compare_words("a red bus", ["a blue bus", "a red car", "red bus bus"])
    assert found.nearest == "a blue bus"
    assert (found.invented, found.missed, found.matched) == ([], ["blue"], ["bus"])


def test_repeated_words_count_as_often_as_both_have_them():
    found = caption_words.compare_words("dog dog dog", ["dog cat cow", "dog dog cow"])
    assert found.nearest == "dog dog cow"


@pytest.mark.parametrize("many", [499, 500, 501])
def test_only_the_first_500_words_count_and_50_are_listed(many):
    words = [f"w{at}" for at in range(many)]
    found = caption_words.compare_words(" ".join([*words, "last"]), ["last"])
    assert found.invented == words[:50]
    assert found.matched == (["last"] if many < 500 else [])


def test_long_texts_take_no_longer_than_their_length():
    text = "a " * 5000 + "-" * 10_000
    assert caption_words.compare_words(text, [text] * 100).nearest == text


def test_function_words_are_words_in_lower_case():
    for word in caption_words.FUNCTION_WORDS:
        assert caption_words.split_words(word) == [word]


def _random_texts(seed, many):
    rng = random.Random(seed)
    return [" ".join(rng.choices(SAID, k=rng.randint(0, 12))) for _ in range(many)]


def test_drawn_captions_have_the_words_of_a_plain_implementation():
    for caption, *references in zip(*(_random_texts(seed, 300) for seed in range(4)), strict=True):
        found = caption_words.compare_words(caption, references)
        assert astuple(found) == plain_words.compare(caption, references)


@given(TEXTS, TEXTS)
def test_words_are_exchanged_as_in_a_plain_implementation(caption, other):
    found = caption_words.find_exchanges(caption, other)
    assert found == plain_words.exchanges(caption, other)


def test_drawn_words_are_exchanged_as_in_a_plain_implementation():
    some = 0
    for caption, other in zip(*(_random_texts(seed, 500) for seed in (8, 9)), strict=True):
        found = caption_words.find_exchanges(caption, other)
        assert found == plain_words.exchanges(caption, other)
        some += bool(found)
    assert some > 30


@pytest.mark.parametrize(
    ("caption", "other", "expected"),
    [
        ("a red bus on a road", "a blue bus on the street", {("red", "blue"), ("road", "street")}),
        ("red", "blue", {("red", "blue")}),
        ("a big red bus", "a blue bus", set()),
        ("a dog", "a the", set()),
        ("same words", "same words", set()),
        ("", "word", set()),
        ("red " * 40 + "x", "red " * 40 + "y", set()),
    ],
)
def test_words_between_the_same_neighbours_are_exchanged(caption, other, expected):
    assert caption_words.find_exchanges(caption, other) == expected
