"""Small tokenizers of pieces of words, of the kinds that captioners have. Nothing is trained: what
training finds differs from run to run where pairs are equally frequent.
"""

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]")
# What is one piece; of other words these may be the beginning.
_WHOLE = (
    "a",
    "and",
    "is",
    "it",
    "on",
    "one",
    "table",
    "the",
    "there",
    "red",
    "gree",
    "blue",
    "yel",
)
_WHOLE += ("squ", "circle", "tri", "unmis")
_LETTERS = tuple(chr(place) for place in range(ord("a"), ord("z") + 1))


def byte_pieces() -> Tokenizer:
    """As GPT-2's: bytes, and a blank is of the piece after it."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces = {piece: place for place, piece in enumerate([*SPECIAL, *letters])}
    merges: list[tuple[str, str]] = []
    for word in _WHOLE:
        for start in ("", "\u0120"):  # which stands for a blank
            piece = start + word
            for end in range(1, len(piece)):
                if piece[: end + 1] not in pieces:
                    pieces[piece[: end + 1]] = len(pieces)
                    merges.append((piece[:end], piece[end]))
    tokenizer = Tokenizer(models.BPE(vocab=pieces, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def word_pieces() -> Tokenizer:
    """As BERT's."""
    inner = (f"##{letter}" for letter in _LETTERS)
    every = [*SPECIAL, ".", ",", "-", *_LETTERS, *inner, *_WHOLE]
    pieces = {piece: place for place, piece in enumerate(dict.fromkeys(every))}
    tokenizer = Tokenizer(models.WordPiece(vocab=pieces, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def probable_pieces() -> Tokenizer:
    """As SentencePiece's, of a unigram model."""
    blank = "\u2581"
    every = [*SPECIAL, blank, ".", ",", "-", *_LETTERS, *_WHOLE, *(blank + each for each in _WHOLE)]
    pieces = [(piece, -1.0 - 1 / len(piece)) for piece in dict.fromkeys(every)]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=SPECIAL.index("[UNK]")))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


KINDS = {"bytes": byte_pieces, "words": word_pieces, "unigram": probable_pieces}
