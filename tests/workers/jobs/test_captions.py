"""Captions as a model's tokenizer writes them."""

from types import SimpleNamespace

import pytest
from tokenizers import decoders

from helpers import tokenizer_files
from service.contract.errors import UnusableCheckpoint
from workers.inference.decoding import DecodedCaption
from workers.inference.pieces import PieceTokens
from workers.jobs import inference


def test_a_tokenizer_that_expands_what_it_decodes_fails_the_task():
    tokenizer = tokenizer_files.byte_pieces()
    ids = tuple(tokenizer.encode("a man").ids)
    pieces = PieceTokens(tokenizer, tokenizer.get_vocab_size(), start=1, end=2, most=100)
    model = SimpleNamespace(tokens=pieces)  # no more of a captioner is asked for
    assert inference._text(model, DecodedCaption(ids, 0.0)) == "a man"
    expanding = decoders.Replace("a", "a" * 20_000)
    tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), expanding])
    with pytest.raises(UnusableCheckpoint, match="characters, and at most 10,000 are scored"):
        inference._text(model, DecodedCaption(ids, 0.0))
