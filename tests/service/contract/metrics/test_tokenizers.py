"""Which texts a tokeniser finds no words in. What PTB makes of each was looked at:
`tests/workers/metrics/test_tokens.py` holds it against Java.
"""

import pytest

from helpers.tokens_of_scripts import READ, UNREAD, WITHOUT_LETTERS
from service.contract.metrics import tokenizers


@pytest.mark.parametrize("text", UNREAD.values(), ids=UNREAD)
@pytest.mark.parametrize("tokenizer", ["ptb", "none", "regex"])
def test_text_without_blanks_between_words_is_not_read(text, tokenizer):
    assert not tokenizers.finds_words(tokenizer, text)


@pytest.mark.parametrize("text", READ.values(), ids=READ)
@pytest.mark.parametrize("tokenizer", ["ptb", "none"])
def test_text_with_blanks_between_words_is_read(text, tokenizer):
    assert tokenizers.finds_words(tokenizer, text)


@pytest.mark.parametrize("text", WITHOUT_LETTERS.values(), ids=WITHOUT_LETTERS)
def test_text_of_which_ptb_keeps_nothing_is_not_read_by_it(text):
    assert not tokenizers.finds_words("ptb", text)
    assert tokenizers.finds_words("none", text)


def test_characters_are_found_in_any_script():
    assert tokenizers.finds_words("character", UNREAD["Chinese"])
