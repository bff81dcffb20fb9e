"""Beside pycocoevalcap itself, in one run: equal where it is right, and right where it is not."""

import numpy as np
import pytest

from helpers.builders import captions_with_references, sentence
from oracles import coco_scorers
from parity import systems
from workers.metrics import postgen, references
from workers.metrics.java.jvm import Jvm
from workers.metrics.tokens import tokenize

PYTHON = ("bleu", "rouge_l", "cider_d", "cider")
WORDS = ["a", "the", "man", "dog", "cat", "runs", "running", "sits", "on", "grass", "big", "red"]
ENGLISH = [
    *("A", "The", "Two", "men", "man's", "dogs", "children", "isn't", "they've", "running", "is"),
    *("wearing", "T-shirt", "on", "in", "of", "with", "near", "grass,", "street;", "(left)", "3"),
    *("1/2", '"Stop"', "U.S.", "e.g.", "--", "&", "café", "$5.00", "5:30", "half-time", "red/blue"),
    *("'s", "cannot", "gonna", "No.", "1990s", "...", "it's", "bike", "riding", "waves", "Mr."),
]
HOSTILE = [
    *WORDS,
    *("*NL*", "ﬁ", "e\u0301", "🐕", "<b>", "&amp;", "http://x.org/a?b=c", "\0", "...", "\t"),
    *("x" * 500, "“quoted”", "SCORE", "EVAL", "a\u00a0b", "-LRB-", "#1", "@you", "\u200b", "|"),
]


def _score(family, captions, refs, jvm):
    tokens = tokenize(captions, refs.tokenizer, jvm)
    return postgen.score_tokens(family, tokens, refs, np.arange(len(tokens)), jvm)


def _text(rng, words):
    """Ends in a long word: after "a" or "U.S" the package keeps a full stop or not by what the next
    line begins with.
    """
    return (
        f"{sentence(rng, words)} {rng.choice(['dogs', 'grass'])}{rng.choice(['', '.', ' .', '!'])}"
    )


def _set(words, images, seed):
    rng = np.random.default_rng(seed)
    captions = [_text(rng, words) for _ in range(images)]
    people = [[_text(rng, words) for _ in range(rng.integers(1, 6))] for _ in range(images)]
    captions[0] = ""
    captions[1] = people[1][0]
    return captions, people


def _agree(captions, refs, jvm, expected, families=PYTHON):
    """BLEU and ROUGE-L in every digit; CIDEr adds up in another order."""
    for family in families:
        found = _score(family, captions, refs, jvm)
        exact = family in ("bleu", "rouge_l")
        for name, value in found.corpus.items():
            corpus, each = expected[name]
            assert value == pytest.approx(corpus, rel=0 if exact else 1e-12), name
            np.testing.assert_allclose(
                found.captions[name], each, rtol=0 if exact else 1e-12, atol=0 if exact else 1e-15
            )


@pytest.mark.parametrize("images", [1, 2, 9, 700])
def test_every_score_is_the_packages(images):
    """700: more than one block."""
    captions, people = captions_with_references(WORDS, images, 0)
    captions[0] = ""
    with Jvm() as unused:
        refs = references.prepare_references(people, "none", unused)
        _agree(captions, refs, unused, coco_scorers.each(captions, people))


@pytest.mark.parametrize("seed", range(3))
def test_hostile_tokens_are_scored_as_by_the_package(seed):
    """Among others: empty references, an image of one word 3,000 times, words that no reference
    holds.
    """
    rng = np.random.default_rng(seed)
    words = [*WORDS, "", "|||", "...", "🐕", "*NL*", "ﬁ", "e\u0301", "\0", "x" * 500, "\ud800"]
    many = "a man " * 600

    def text(least):
        drawn = rng.choice(words, rng.integers(0, rng.choice([3, 9, 40])))
        found = " ".join(" ".join(drawn).split()) if rng.random() > 0.02 else many.strip()
        return found if len(found.split()) >= least else "a man"

    captions = [text(least=1) for _ in range(60)]
    people = [[text(least=0) for _ in range(rng.integers(1, 8))] for _ in captions]
    with Jvm() as unused:
        refs = references.prepare_references(people, "none", unused)
        _agree(captions, refs, unused, coco_scorers.each(captions, people))


@pytest.mark.parametrize("words", [ENGLISH, HOSTILE], ids=["English", "hostile"])
def test_what_people_write_is_tokenised_and_scored_as_by_the_package(jvm, words):
    captions, people = _set(words, 200, 0)
    theirs = coco_scorers.tokenize(people)
    said = [image[0] for image in coco_scorers.tokenize([[text] for text in captions])]
    refs = references.prepare_references(people, "ptb", jvm)
    assert list(map(list, refs.captions)) == theirs
    assert tokenize(captions, "ptb", jvm) == said
    _agree(captions, refs, jvm, coco_scorers.each(said, theirs))


@pytest.fixture(scope="module")
def their_meteor():
    with coco_scorers.meteor() as score:
        yield score


@pytest.mark.slow
@pytest.mark.parametrize("words", [ENGLISH, HOSTILE], ids=["English", "hostile"])
def test_meteor_is_the_packages_in_every_digit(jvm, their_meteor, words):
    captions, people = _set(words, 300, 1)
    refs = references.prepare_references(people, "ptb", jvm)
    tokens = tokenize(captions, "ptb", jvm)
    _agree_on_meteor(_score("meteor", captions, refs, jvm), *their_meteor(tokens, refs.captions))


@pytest.mark.slow
def test_meteor_is_the_packages_also_where_another_was_published(data, jvm, their_meteor):
    captions = systems.system(data, "flickr30k", "init_1").captions
    refs = references.prepare_references(systems.references(data, "flickr30k"), "none", jvm)
    _agree_on_meteor(_score("meteor", captions, refs, jvm), *their_meteor(captions, refs.captions))


def _agree_on_meteor(found, corpus, each):
    """Over all captions Java's power function and C's may be one bit apart."""
    assert found.captions["meteor"].tolist() == each
    assert found.corpus["meteor"] == pytest.approx(corpus, rel=1e-15)


# The package's bugs


SEPARATORS = ("\r", "\r\n", "\v", "\f", "\u2028", "\u2029")


def test_line_separators_move_the_packages_captions_to_other_images_and_none_of_ours(jvm):
    """One more line each: six captions further on, none is left of those that it should score."""
    many = len(SEPARATORS)
    balls = [f"A red{mark}ball." for mark in SEPARATORS]
    captions = ["A man's dog.", *balls, *["Two cats run."] * many]
    people = [["A dog."], *[["The red ball."]] * many, *[["Two cats run.", "Cats."]] * many]
    theirs = [image[0] for image in coco_scorers.tokenize([[text] for text in captions])]
    right = ["a man 's dog", *["a red ball"] * many, *["two cats run"] * many]
    assert theirs == ["a man 's dog", *["a red", "ball"] * many]
    assert tokenize(captions, "ptb", jvm) == right
    refs = references.prepare_references(people, "ptb", jvm)
    _agree(captions, refs, jvm, coco_scorers.each(right, refs.captions))
    assert coco_scorers.each(theirs, refs.captions)["cider_d"][1][-many:] == pytest.approx(
        [0] * many
    )


def test_a_caption_without_words_scores_0_also_where_a_reference_has_none_either():
    """The package's ROUGE-L is 1: it takes the nothing between blanks for a word."""
    captions, people = ["", "a dog"], [["", "a dog"], ["a cat", ""]]
    assert coco_scorers.each(captions, people)["rouge_l"][1][0] == 1.0
    with Jvm() as unused:
        refs = references.prepare_references(people, "none", unused)
        for family in PYTHON:
            for values in _score(family, captions, refs, unused).captions.values():
                assert values[0] <= 1e-9


BARS = [
    ("a dog runs", ["a cat ||| a dog runs"]),  # two references to it
    ("a dog runs", ["a dog ||| runs", "a cat"]),
    ("a ||| dog runs", ["a dog runs"]),  # taken out
]


@pytest.mark.slow
def test_bars_change_the_packages_meteor_and_are_punctuation_in_ours(jvm, their_meteor):
    """Right is what the jar itself makes of the same captions with their bars apart."""
    captions, people = zip(*BARS, strict=True)

    def apart(text):
        return text.replace("|||", "| | |")

    _, wrong = their_meteor(captions, people)
    right = their_meteor(
        [apart(text) for text in captions], [[apart(text) for text in image] for image in people]
    )
    assert all(a != b for a, b in zip(wrong, right[1], strict=True))
    for tokenizer in ("none", "ptb"):
        found = _score(
            "meteor", captions, references.prepare_references(people, tokenizer, jvm), jvm
        )
        _agree_on_meteor(found, *right)
