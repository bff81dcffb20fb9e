"""Pieces of words: which pieces make a word, by three kinds of tokenizers and on hostile text."""

from contextlib import nullcontext
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import ByteLevelBPETokenizer, Tokenizer, models, normalizers, pre_tokenizers
from tokenizers.trainers import UnigramTrainer, WordPieceTrainer

import prescore
from prescore.recording import words
from service.contract.formats import bundles, columns_values
from service.contract.formats.bundles import BundleItem
from service.contract.formats.vocabularies import MODEL_TOKENIZERS
from workers.inference import columns

TEXTS = (
    "Two dogs \U0001f415\u200d\U0001f9ba, one na\u00efve cat\u2026 in a cafe\u0301!",
    "\u72ac\u304c\u4e8c\u5339 \u3044\u308b \ud55c\uad6d\uc5b4",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628 a\ufffd b",
    "don't  it's\ta man\u00a0who \ufb01nds \u00bd \u0130stanbul \u2163 \u00df",
    "zero\u200bwidth soft\u00adhyphen right\u200fleft \ufdfa \u00a8x",
)
ITEMS = (
    BundleItem("a.jpg", "test", TEXTS[:4]),
    BundleItem("b.jpg", "test", (TEXTS[4], "...", "a")),
)


def byte_level():
    made = ByteLevelBPETokenizer()
    made.train_from_iterator(TEXTS, 300, min_frequency=1, show_progress=False)
    return made


def word_piece():
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer()
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    options = {"vocab_size": 120, "special_tokens": ["[UNK]"], "show_progress": False}
    made.train_from_iterator(TEXTS, WordPieceTrainer(**options))
    return made


def sentence_piece():
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    options = {"vocab_size": 120, "special_tokens": ["<unk>"], "show_progress": False}
    made.train_from_iterator(TEXTS, UnigramTrainer(unk_token="<unk>", **options))
    return made


KINDS = {make.__name__: make() for make in (byte_level, word_piece, sentence_piece)}
of_each_kind = pytest.mark.parametrize("kind", KINDS)
SIGNS = st.sampled_from(
    "".join(TEXTS) + "'\u2019\u0301\ufe0f\u200d\u200b\u3000\u0085\r\n\x1c\x00_-."
)
TEXT = st.text(SIGNS | st.characters(exclude_categories=["Cs"]), max_size=40)


def word_by_word(kind, text):
    """How many pieces each word adds to those of the words before it."""
    found = text.split(" ") if text else []
    beginnings = [" ".join(found[:count]) for count in range(len(found) + 1)]
    lengths = [len(KINDS[kind].encode(beginning).tokens) for beginning in beginnings]
    return [after - before for before, after in pairwise(lengths)]


@of_each_kind
@given(reference=TEXT, tokenizer=st.sampled_from(["blanks", "karpathy"]))
def test_each_word_has_the_pieces_that_it_adds(kind, reference, tokenizer):
    text = words.join_words(reference, tokenizer)
    assert text.split() == MODEL_TOKENIZERS[tokenizer](reference)
    made = KINDS[kind].encode(text)
    expected = word_by_word(kind, text)
    if 0 in expected:  # signs that this kind leaves out
        with pytest.raises(prescore.InvalidArgument, match=r"no piece is of (the word|character)"):
            words.count_pieces(text, made.offsets, len(made.tokens))
    else:
        assert words.count_pieces(text, made.offsets, len(made.tokens)) == expected


@given(text=TEXT)
def test_references_become_words_as_in_the_service(text):
    assert words.TOKENIZERS.keys() == MODEL_TOKENIZERS.keys()
    for name, split in words.TOKENIZERS.items():
        assert split(text) == MODEL_TOKENIZERS[name](text)


@pytest.mark.parametrize(
    ("text", "offsets", "told"),
    [
        ("a cat", [(0, 1), (1, 5), (0, 0)], None),  # END's row is not read
        ("a cat", [(0, 1), (2, 3), (3, 5)], None),  # without the blank
        ("a cat", [(0, 2), (2, 5)], None),  # the blank at the end of the first
        ("a cat", [(0, 1), (1, 2), (2, 5)], None),  # the blank alone
        ("a cat", [(0, 5)], r"pieces\[0\], 'a cat', is of more than one word"),
        ("a cat", [(0, 1), (2, 4)], r"no piece is of characters\[4\] of 'a cat', 't'"),
        ("a cat", [(0, 1)], r"no piece is of characters\[2\]"),
        ("a \u200b", [(0, 1)], "no piece is of the word"),
        ("a cat", [(2, 5), (0, 1)], "expected offsets of characters in 'a cat'"),
        ("a cat", [(0, 1), (2, 6)], "expected offsets of characters in 'a cat'"),
        ("a cat", [(0, 0), (0, 5)], "expected offsets of characters in 'a cat'"),
        ("a cat", [(-1, 1), (1, 5)], "expected offsets of characters in 'a cat'"),
        ("", [(0, 1)], "expected offsets of characters in ''"),
        ("a cat", [0, 1], r"expected offsets \(2, 2\), .* found \(2,\)"),
        ("a cat", [("0", "1"), ("1", "5")], r"expected offsets \(2, 2\)"),
    ],
)
def test_offsets_fit_the_text_or_are_refused(text, offsets, told):
    pieces = len([each for each in offsets if each != (0, 0)]) if told is None else len(offsets)
    if told is None:
        assert sum(words.count_pieces(text, offsets, pieces)) == pieces
        assert len(words.count_pieces(text, offsets, pieces)) == 2
    else:
        with pytest.raises(prescore.InvalidArgument, match=told):
            words.count_pieces(text, offsets, pieces)


@pytest.fixture
def bundle(tmp_path):
    bundles.write_bundle_folder(tmp_path / "data", ITEMS)
    return tmp_path / "data"


@of_each_kind
@pytest.mark.parametrize("tokenizer", ["blanks", "karpathy"])
@pytest.mark.parametrize("by", ["offsets", "counts"])
def test_words_and_pieces_are_written_and_read(kind, tokenizer, by, bundle, tmp_path):
    """Of every word the product of its pieces' probabilities and their greatest rank."""
    made, rng, expected = KINDS[kind], np.random.default_rng(1), []
    size = made.get_vocab_size() + 1  # END is the last
    path = tmp_path / "columns.safetensors"
    shown = [made.id_to_token(id_) for id_ in range(size - 1)] + ["<end>"]
    with prescore.Recorder(
        bundle, vocabulary=shown, tokenizer=tokenizer, pieces=kind, entropy=True
    ) as recorder:
        for image, references in recorder.images():
            for place, text in enumerate(references):
                found = made.encode(text)
                targets = torch.tensor([*found.ids, size - 1])
                logits = torch.tensor(rng.normal(size=(len(targets), size)) * 2)
                counts = word_by_word(kind, text)
                told = {
                    "offsets": torch.tensor([*found.offsets, (0, 0)]),
                    "counts": counts,
                }
                recorder.add(image, place, logits, targets, **{by: told[by]})
                logs = logits.log_softmax(1).gather(1, targets[:, None])[:, 0]
                ranks = (logits > logits.gather(1, targets[:, None])).sum(1)
                ends = np.cumsum([0, *counts, 1])
                expected.append(
                    [(logs[a:b].sum().item(), ranks[a:b].max().item()) for a, b in pairwise(ends)]
                )
        recorder.write(path)
    header = columns_values.validate_columns(path)
    assert (header.tokenizer, header.pieces) == (tokenizer, kind)
    assert columns_values.find_split_difference(path, ITEMS, 2) is None
    of_words, _ = columns.read_uploaded_columns(path)
    assert np.diff(of_words.caption_offsets).tolist() == [len(each) for each in expected]
    logp, rank = zip(*(pair for each in expected for pair in each), strict=True)
    np.testing.assert_allclose(of_words.logp, logp, rtol=1e-6)
    assert of_words.rank.tolist() == [*rank]
    of_pieces, _ = columns.read_uploaded_columns(path, "pieces")
    assert len(of_pieces.logp) == header.tokens > header.words == len(logp)
    starts = of_words.caption_offsets[:-1], of_pieces.caption_offsets[:-1]
    whole = [
        np.add.reduceat(np.float64(each.logp), at)
        for each, at in zip((of_words, of_pieces), starts, strict=True)
    ]
    np.testing.assert_allclose(*whole, rtol=1e-6)  # a caption's probability is the same


def test_references_of_pieces_come_in_any_order(tmp_path):
    bundles.write_bundle_folder(tmp_path, [BundleItem("a.jpg", "test", ("a b", "c"))])
    given = [(0, [1, 2, 3, 0], [2, 1]), (1, [1, 0], [1])]
    for name, order in (("one", given), ("other", given[::-1])):
        with prescore.Recorder(tmp_path, pieces="bpe") as recorder:
            for reference, targets, counts in order:
                logits = np.tile([0.1, 0.2, 0.4, 0.8], (len(targets), 1))
                recorder.add("a.jpg", reference, logits, targets, counts=counts)
            recorder.write(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


@pytest.mark.parametrize(
    ("options", "added", "told"),
    [
        ({}, {"counts": [1]}, "expected no offsets and no counts"),
        ({}, {"offsets": [(0, 1)]}, "expected no offsets and no counts"),
        ({"pieces": "bpe"}, {}, "`offsets` or `counts` for pieces, one of the two; found neither"),
        ({"pieces": "bpe"}, {"offsets": [(0, 1)], "counts": [1]}, "found both"),
        ({"pieces": "bpe"}, {"offsets": [(0, 1), (1, 3)]}, "expected `counts`: offsets tell"),
        (
            {"pieces": "bpe", "tokenizer": "blanks"},
            {"counts": [2]},
            "expected counts of the 2 words of 'a b', found 1",
        ),
        ({"pieces": "bpe"}, {"counts": [1, 2]}, "expected counts whose sum is 2, .* found 3"),
        ({"pieces": "bpe"}, {"counts": [2, 0]}, "expected counts of at least 1 piece"),
        ({"pieces": "bpe"}, {"counts": [1.0, 1.0]}, "expected counts of at least 1 piece"),
        ({"pieces": "bpe"}, {"counts": 2}, "expected counts of at least 1 piece"),
        ({"pieces": "a|b"}, {}, "pieces: expected 1 to 100 letters"),
    ],
)
def test_words_that_cannot_be_told_are_refused_at_once(options, added, told, tmp_path):
    bundles.write_bundle_folder(tmp_path, [BundleItem("a.jpg", "test", (" a  b",))])
    with pytest.raises(prescore.InvalidArgument, match=told):  # noqa: PT012
        recorder = prescore.Recorder(tmp_path, **options)
        recorder.add("a.jpg", 0, np.zeros((3, 3)), [1, 2, 0], **added)


@pytest.mark.parametrize(
    ("tokenizer", "meant"),
    [("karpaty", "karpathy"), ("Karpathy", "karpathy"), ("blank", "blanks")],
)
def test_a_tokenizer_that_is_nearly_one_of_ours_is_warned_of(tokenizer, meant):
    with pytest.warns(UserWarning, match=f"'{tokenizer}' is none that .* did you mean '{meant}'"):
        words.warn_of_misspelling(tokenizer)


@pytest.mark.parametrize("tokenizer", ["karpathy", "blanks", "own", "spacy", "gpt2", "bert-base"])
def test_other_names_are_ones_own(tokenizer):
    """Warnings are errors here."""
    words.warn_of_misspelling(tokenizer)


CASED = ("<edge>", "<unk>", "a", "A", "dog", "Dog", "runs", "The")


@pytest.mark.parametrize(
    ("vocabulary", "options", "is_told"),
    [
        (CASED, {"tokenizer": "karpathy"}, True),
        (CASED, {"tokenizer": "blanks"}, False),
        (CASED, {}, False),
        (CASED, {"tokenizer": "karpathy", "pieces": "gpt2"}, True),
        (CASED, {"tokenizer": "blanks", "pieces": "gpt2"}, False),
        ([f"\u2581{each}" for each in CASED], {"tokenizer": "karpathy", "pieces": "t5"}, True),
        (("<edge>", "<UNK>", "A", "a", "dog", "runs"), {"tokenizer": "karpathy"}, False),
        (
            ("<edge>", "<unk>", "a", "dog", "Smith", *"bcdefghij" * 11),
            {"tokenizer": "karpathy"},
            False,
        ),
        (("<edge>", "<unk>", "\u0120a", "\u0120dog", "s"), {"tokenizer": "karpathy"}, False),
        (None, {"tokenizer": "karpathy"}, False),
    ],
)
def test_small_letters_for_a_model_of_capital_ones_are_warned_of(
    vocabulary, options, is_told, tmp_path
):
    """Warnings are errors here."""
    bundles.write_bundle_folder(tmp_path, [BundleItem("a.jpg", "test", ("A dog runs",))])
    told = (
        pytest.warns(UserWarning, match='2 of 8 words .* capital letters.*tokenizer="blanks"')
        if is_told
        else nullcontext()
    )
    with told:
        prescore.Recorder(tmp_path, vocabulary=vocabulary, **options)


@pytest.mark.parametrize(("unknown", "is_told"), [(1, False), (2, True), (3, True)])
@pytest.mark.parametrize("tokenizer", ["karpathy", "own"])
def test_references_that_mostly_hold_unknown_words_are_warned_of(
    unknown, is_told, tokenizer, tmp_path
):
    bundles.write_bundle_folder(
        tmp_path / "d", [BundleItem("a.jpg", "test", ("a dog", "a cat", "a man"))]
    )
    words_ = ("<edge>", "<UNK>", "a", "dog")
    recorder = prescore.Recorder(tmp_path / "d", vocabulary=words_, tokenizer=tokenizer)
    for place in range(3):
        recorder.add("a.jpg", place, np.zeros((3, 4)), [2, 1 if place < unknown else 3, 0])
    said = f"{unknown} of 3 references hold <UNK>.*`tokenizer`"
    with pytest.warns(UserWarning, match=said) if is_told else nullcontext():
        recorder.write(tmp_path / "columns")
