"""Words and their pieces, by three kinds of tokenizers. Oracles: the tokenizer's own decoder, and
what it makes of each word alone.
"""

from itertools import pairwise

import numpy as np
import pytest

from helpers import tokenizer_files
from helpers.hostile_text import HOSTILE, REAL
from service.contract.errors import CheckpointMismatch
from workers.inference.pieces import PieceTokens

START, END = 1, 2
TEXTS = [
    "a red  square ",
    "one, éx-tra\tcircle \U0001f600.",
    "",
    REAL,
    "\u200d\ufeff zero\u200bwidth \u0301 alone",
    "ﬁ ½ ㎏ ǆ İ ß Ⅷ",
    "\x1c\x85\u2028 a\u00a0b \u3000",
    "[PAD [ ] ##a x▁y Ġa \ufffd",
    *HOSTILE.values(),
]


def _pieces(kind, most=20_000):
    tokenizer = tokenizer_files.KINDS[kind]()
    return PieceTokens(tokenizer, tokenizer.get_vocab_size(), START, END, most)


def _of_words(found):
    """The ids of each word of each caption, without END."""
    words = np.split(found.tokens, found.word_offsets[1:-1])
    captions = np.searchsorted(found.word_offsets, found.caption_offsets)
    return [[word.tolist() for word in words[start : end - 1]] for start, end in pairwise(captions)]


def test_pieces_of_bytes_are_those_from_which_each_word_is_read_again():
    one = _pieces("bytes")
    for text, words in zip(TEXTS, _of_words(one.encode([TEXTS])), strict=True):
        assert [one.text(ids) for ids in words] == text.split(), text


@pytest.mark.parametrize("kind", ["words", "unigram"])
def test_a_word_has_the_pieces_that_it_has_alone(kind):
    """These tokenizers look at no other word."""
    one = _pieces(kind)
    alone = {
        word: one.tokenizer.encode(word, add_special_tokens=False).ids
        for text in TEXTS
        for word in text.split()
    }
    for text, words in zip(TEXTS, _of_words(one.encode([TEXTS])), strict=True):
        assert words == [alone[word] for word in text.split() if alone[word]], text


@pytest.mark.parametrize("kind", tokenizer_files.KINDS)
def test_every_caption_ends_once_and_all_its_pieces_are_there(kind):
    one = _pieces(kind)
    found = one.encode([TEXTS[:3], [], TEXTS[3:]])
    assert found.image_offsets.tolist() == [0, 3, 3, len(TEXTS)]
    ends = found.caption_offsets[1:] - 1
    assert (found.tokens[ends] == END).all()
    assert np.isin(found.caption_offsets, found.word_offsets).all()
    assert np.isin(ends, found.word_offsets).all()


def test_a_caption_has_as_many_pieces_as_the_model_reads_and_no_more():
    text = "red circle"
    count = len(_pieces("bytes").encode([[text]]).tokens)  # with END; START is read in its place
    _pieces("bytes", most=count).encode([[text]])
    with pytest.raises(CheckpointMismatch, match=f"has {count - 1} pieces, .* at most {count - 2}"):
        _pieces("bytes", most=count - 1).encode([[text]])


def test_a_tokenizer_that_cannot_go_on_is_a_sentence():
    """A unigram model without a piece for what it does not know raises where it meets that."""
    from tokenizers import Tokenizer, models

    bare = PieceTokens(Tokenizer(models.Unigram([("a", -1.0)])), 3, START, END, 10)
    with pytest.raises(CheckpointMismatch, match=r"no pieces of the references: .*(?i:unk)"):
        bare.encode([["é"]])
