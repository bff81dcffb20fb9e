import random

import pytest

from workers.bench.judging.robustness import make_foils


def _made(caption, *others, seeds=20):
    """Every foil of each kind, over seeds."""
    found = {}
    for seed in range(seeds):
        for kind, wrong in make_foils(caption, (caption, *others), random.Random(seed)):
            found.setdefault(kind, set()).add(wrong)
    return found


def test_a_word_is_exchanged_for_one_that_no_caption_of_the_image_holds():
    found = _made("Two dogs run", "a red dog by a cat", "three puppies and a horse", seeds=80)
    nouns = {wrong.split()[1] for wrong in found["noun exchanged"]}
    assert {"birds", "elephants", "cows"} <= nouns
    assert nouns.isdisjoint({"cats", "kittens", "horses", "ponies", "puppies", "dogs"})
    assert all(noun.endswith("s") for noun in nouns)
    numbers = {wrong.split()[0] for wrong in found["number exchanged"]}
    assert numbers == {"Four", "Five", "Six"}
    verbs = {wrong.split()[2] for wrong in found["verb exchanged"]}
    assert {"sit", "walk", "eat"} <= verbs
    assert "runs" not in verbs
    assert "colour exchanged" not in found


def test_what_the_image_has_many_of_is_no_foil_for_one():
    nouns = {
        wrong.split()[1] for wrong in _made("a dog", "zebras, a bear", seeds=80)["noun exchanged"]
    }
    assert {"cat", "giraffe"} <= nouns
    assert nouns.isdisjoint({"zebra", "bear"})


def test_an_article_fits_the_word_behind_it():
    wrong = _made("a dog barks", seeds=60)["noun exchanged"]
    assert "an elephant barks" in wrong
    assert "a bird barks" in wrong
    assert _made("An elephant and a man")["roles swapped"] == {"A man and an elephant"}


@pytest.mark.parametrize(
    ("caption", "kind", "wrong"),
    [
        ("A man bites a dog .", "roles swapped", "A dog bites a man ."),
        ("a man, a man and a horse", "roles swapped", "a horse, a man and a man"),
        ("a b c d e f g", "first half alone", "a b c"),
        ("a b c d e f g", "first half twice", "a b c a b c d"),
        ("a cat under a table", "relation exchanged", None),
    ],
)
def test_rules_change_what_they_say(caption, kind, wrong):
    found = _made(caption)[kind]
    assert wrong is None or found == {wrong}
    assert caption not in found


@pytest.mark.parametrize("caption", ["", "猫 が 座る", "a b c d e", "dog"])
def test_what_no_rule_fits_has_no_foil_that_is_a_caption(caption):
    found = _made(caption)
    assert set(found) <= {"noun exchanged"}


def test_no_foil_is_a_caption_of_the_image():
    assert "roles swapped" not in _made("A man sees a dog", "A dog sees a man")
