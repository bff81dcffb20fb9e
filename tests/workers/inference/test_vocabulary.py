import re

import numpy as np
import pytest

from helpers.builders import encoded, random_references
from service.contract.formats.vocabularies import MODEL_TOKENIZERS
from workers.inference import vocabulary
from workers.inference.vocabulary import EncodedCaptions


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A man's dog, running .", ["a", "mans", "dog", "running"]),
        ("black-and-white; 2/3 & more", ["black", "and", "white", "2", "3", "more"]),
        ("", []),
        (" \t\u2028 ", []),
        ("Ein Café – schön", ["ein", "café", "schön"]),
    ],
)
def test_karpathys_tokens(text, words):
    assert MODEL_TOKENIZERS["karpathy"](text) == words
    assert words == re.findall(r"\w+", re.sub(r"[^\w\s\-/,;:&]", "", text.lower()))


def test_blanks_leave_tokens_as_they_are():
    assert MODEL_TOKENIZERS["blanks"]("A man 's  dog .") == ["A", "man", "'s", "dog", "."]


def test_unknown_words_become_unk_and_every_caption_ends():
    found = vocabulary.encode_captions(
        [["a cat", "", "a <unk> <edge> dog"], ["cat"]], ("<edge>", "<unk>", "a", "cat"), "blanks"
    )
    assert found.tokens.tolist() == [2, 3, 0, 0, 2, 1, 1, 1, 0, 3, 0]
    assert found.caption_offsets.tolist() == [0, 3, 4, 9, 11]
    assert found.image_offsets.tolist() == [0, 3, 4]


def test_the_vocabulary_is_the_words_seen_often_enough_sorted():
    captions = ["b b a", "b a", "c a b b"]
    assert vocabulary.build_vocabulary(captions, "blanks", 3) == ("<edge>", "<unk>", "a", "b")
    assert vocabulary.build_vocabulary(captions, "blanks", 1) == ("<edge>", "<unk>", "a", "b", "c")


def test_a_part_is_what_its_images_alone_would_be():
    references = random_references(9, 20, np.random.default_rng(0))
    part = encoded(references).part(3, 7)
    alone = encoded(references[3:7])
    for name in ("tokens", "caption_offsets", "image_offsets"):
        np.testing.assert_array_equal(getattr(part, name), getattr(alone, name))


def test_a_subset_holds_its_captions_and_knows_where_they_were():
    whole = encoded([[[5], [6, 7]], [[8]], [[9, 9], [], [4]]])
    subset = whole.subset(np.array([1, 3, 5]))
    assert subset.captions.tokens.tolist() == [6, 7, 0, 9, 9, 0, 4, 0]
    assert subset.captions.caption_offsets.tolist() == [0, 3, 6, 8]
    assert subset.captions.image_offsets.tolist() == [0, 1, 3]
    assert subset.images.tolist() == [0, 2]
    assert whole.tokens[subset.tokens].tolist() == subset.captions.tokens.tolist()


def test_a_word_is_within_a_prefix_when_its_last_piece_is():
    """Of two captions: pieces 2 + 1 and END, and END alone."""
    pieces = EncodedCaptions(
        np.array([5, 6, 7, 0, 0]),
        np.array([0, 4, 5]),
        np.array([0, 2]),
        word_offsets=np.array([0, 2, 3, 4, 5]),
    )
    found = [pieces.whole_words(np.array([length, 0]))[0] for length in range(5)]
    assert found == [0, 0, 1, 2, 3]
    assert pieces.whole_words(np.array([1, 1])).tolist() == [0, 1]
    assert pieces.words.tolist() == [3, 1]
