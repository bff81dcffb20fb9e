"""Files of columns that somebody's own code computed: read strictly, refused with the place."""

import json
import math

import pytest

from helpers.columns_files import (
    IMAGES,
    LOGP,
    RANK,
    TENSORS,
    WITH_PIECES,
    WITH_WORDS,
    WORDS,
    changed,
    columns,
)
from helpers.contract_files import refused, safetensors_file
from service.contract.errors import ColumnsRefused
from service.contract.formats import columns_values
from service.contract.formats.bundles import BundleItem


@pytest.fixture
def judged(tmp_path):
    def act(content):
        path = tmp_path / "columns.safetensors"
        path.write_bytes(content)
        return columns_values.validate_columns(path)

    return act


@pytest.mark.parametrize("base", [TENSORS, WITH_WORDS])
def test_the_header_says_what_the_columns_are_of(base, judged):
    found = judged(columns(base=base))
    assert found.images == IMAGES
    assert (found.tokens, found.references, found.top) == (9, 3, int(base is WITH_WORDS))
    assert (found.tokenizer, found.model) == ("own", "a model")
    assert found.vocabulary == (WORDS if base is WITH_WORDS else None)


def test_pieces_make_words(judged):
    found = judged(columns(base=WITH_PIECES))
    assert (found.tokens, found.words, found.pieces) == (9, 7, "bpe")
    found = judged(columns(base=WITH_WORDS))
    assert (found.words, found.pieces) == (None, None)


def test_what_is_unusual_but_right_is_accepted(judged):
    judged(columns(changed("logp", 1, -math.inf)))  # a word that the model thinks impossible
    judged(columns({"rank": ("U32", (9,), RANK)}))
    judged(columns(changed("logp", 0, -0.0)))  # and rank 0
    judged(columns(metadata={"tokenizer": "Salesforce/blip-image-captioning-base", "more": "x"}))
    judged(columns(metadata={"images": json.dumps(["é.jpg", "a b.jpg"])}))
    # Ranks of equal logits are equal, and half precision's sum of probabilities is not quite 1.
    judged(columns(changed("logp", 1, math.log(0.5) + 0.009)))


def shape(name, *wanted):
    dtype, _, content = WITH_WORDS[name]
    return {name: (dtype, wanted, [*content, *content][: math.prod(wanted)])}


def dtype(name, wanted):
    _, shape, content = WITH_WORDS[name]
    return {name: (wanted, shape, [abs(x) for x in content] if wanted[0] == "U" else content)}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ("expected a safetensors file", "found 0 bytes")),
        (columns()[:-1], ("the file is cut off",)),
        (safetensors_file(b"{}", length=2**63), ("at most 16000000 are accepted",)),
        *(
            (columns(metadata={name: None}), (f"missing: {name}",))
            for name in ("prescore_columns", "images", "tokenizer", "model")
        ),
        (columns(metadata={"prescore_columns": "2"}), ("expected '1', found '2'",)),
        *(
            (columns(metadata={"tokenizer": odd}), ("tokenizer: expected", "`karpathy`"))
            for odd in ("", "a|b", "é", "x" * 101, "a\n")
        ),
        (columns(metadata={"more": "x" * 100_001}), ("metadata 'more' has 100001",)),
        (columns(metadata={"model": "x" * 1001}), ("model: ", "at most 1000 characters")),
        (columns(metadata={"model": "\x1b[31m"}), ("model: ", "control character")),
        (columns(metadata={"images": "[]"}), ("images: expected at least one name",)),
        (columns(metadata={"images": '["a", 5]'}), ("images: expected a JSON list of strings",)),
        (columns(metadata={"images": '["a", "a"]'}), ("images: expected each", "'a' twice")),
        (columns(metadata={"images": '["a", ""]'}), ("images: expected a name", "found ''")),
        (columns(metadata={"images": '["a", "\\n"]'}), ("images: ", "printable")),
        (columns(metadata={"images": json.dumps(["a", "b" * 501])}), ("1 to 500 printable",)),
        (columns(metadata={"images": '["a"]'}), ("tensor image_offsets: expected the shape [2]",)),
        (columns(metadata={"vocabulary": '["\\n"]'}), ("vocabulary: ", "control character")),
        (columns(metadata={"vocabulary": json.dumps(["x" * 257])}), ("at most 256 bytes",)),
        *(
            (columns({name: None}), (f"missing: {name}", "expected the tensors logp"))
            for name in TENSORS
        ),
        (columns({"more": TENSORS["logp"]}), ("unknown: 'more'",)),
        (columns({"top_ids": None}, base=WITH_WORDS), ("both `top_ids` and `top_logp`",)),
        (columns(metadata={"vocabulary": None}, base=WITH_WORDS), ("expected the words of `ids`",)),
        *(
            (content, ("both the metadata `pieces` and the tensor `word_offsets`",))
            for content in (
                columns(metadata={"pieces": "bpe"}),
                columns(metadata={"pieces": None}, base=WITH_PIECES),
            )
        ),
        (columns(metadata={"pieces": "a|b"}, base=WITH_PIECES), ("pieces: expected the name",)),
        (columns({"word_offsets": ("I64", (11,), [*range(11)])}, {"pieces": "bpe"}),
            ("word_offsets: expected a vector of 1 to 10 offsets",)),
        (columns(dtype("logp", "F64")), ("logp: expected a dtype of F32, found F64",)),
        (columns(dtype("rank", "I64")), ("rank: expected a dtype of U16 or U32, found I64",)),
        (columns(shape("logp", 3, 3)), ("logp: expected a vector", "[3, 3]")),
        (columns(shape("rank", 8)), ("rank: expected the shape [9]", "found [8]")),
        (columns(shape("ids", 9, 1), base=WITH_WORDS), ("ids: expected the shape [9]",)),
        (columns(shape("top_ids", 9), base=WITH_WORDS), ("expected 1 to 20 words",)),
        (columns(shape("top_ids", 1, 9), base=WITH_WORDS), ("expected the shape [9, 9]",)),
    ],
)  # fmt: skip
def test_a_wrong_header_is_refused_with_what_was_expected(content, words, judged):
    refused(lambda: judged(content), ColumnsRefused, *words)


@pytest.mark.parametrize(
    ("name", "place", "value", "words"),
    [
        ("logp", 8, math.nan, ("logp, image 'b.jpg', references[0], tokens[3]: ", "found nan")),
        ("logp", 4, 0.1, ("logp, image 'a.jpg', references[1], tokens[1]: ", "at most 0")),
        ("logp", 0, -math.inf, ("rank 0", "found -inf")),
        ("logp", 2, math.log(0.4), ("rank 2", "at most -1.0986")),
        ("rank", 3, 1, ("logp, image 'a.jpg', references[1], tokens[0]", "rank 1")),
        ("caption_offsets", 0, 1, ("caption_offsets: expected 0 first and 9",)),
        ("caption_offsets", 3, 8, ("expected 0 first and 9, the number of tokens, last",)),
        ("caption_offsets", 2, 3, ("entry 2 to be greater than entry 1", "found 3, 3")),
        ("caption_offsets", 1, -1, ("entry 1 to be greater than entry 0", "found 0, -1")),
        ("word_offsets", 0, 1, ("word_offsets: expected 0 first and 9",)),
        ("word_offsets", 7, 10, ("expected 0 first and 9, the number of tokens, last",)),
        ("word_offsets", 2, 2, ("entry 2 to be greater than entry 1", "found 2, 2")),
        ("word_offsets", 1, 1, ("image 'a.jpg', references[0], tokens[2]: ", "END", "found 1, 3")),
        ("image_offsets", 2, 4, ("image_offsets: expected 0 first and 3",)),
        ("rank", 7, 5, ("rank, image 'b.jpg', references[0], tokens[2]: ", "5 words; found 5")),
        ("ids", 3, 5, ("ids, image 'a.jpg', references[1], tokens[0]: ", "5 words; found 5")),
        ("top_ids", 3, 9, ("top_ids, image 'a.jpg', references[1], tokens[0]: ", "found 9")),
        ("top_logp", 0, math.nan, ("top_logp, image 'a.jpg', references[0], tokens[0]: ",)),
        ("top_logp", 0, -0.1, ("rank 0", "found -0.1")),
        ("top_logp", 1, -3.0, ("rank 1", "found -3")),
        ("entropy", 4, math.nan, ("entropy, image 'a.jpg', references[1], tokens[1]: ",)),
        ("entropy", 4, -0.5, ("at least 0",)),
        ("entropy", 4, math.inf, ("at least 0", "found inf")),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_place(name, place, value, words, judged):
    content = columns(changed(name, place, value, WITH_PIECES), base=WITH_PIECES)
    refused(lambda: judged(content), ColumnsRefused, *words)


@pytest.mark.parametrize(("name", "value"), [("logp", 0.5), ("ids", 5)])
def test_values_beyond_the_first_chunk_are_read(name, value, judged):
    many = 70_000
    tensors = {
        "logp": ("F32", (many,), [*LOGP[:1] * many]),
        "rank": ("U16", (many,), [0] * many),
        "ids": ("U16", (many,), [0] * many),
        "caption_offsets": ("I64", (4,), [0, 3, 5, many]),
    }
    tensors |= changed(name, many - 1, value, tensors)
    content = columns(tensors, {"vocabulary": json.dumps(WORDS)})
    place = f"references[0], tokens[{many - 6}]:"
    refused(lambda: judged(content), ColumnsRefused, f"{name}, ", place)


SPLIT = (
    BundleItem("a.jpg", "test", ("a cat", "sat"), id="7"),
    BundleItem("b.jpg", "test", ("a cat sat",)),
)


def _other(*references):
    return SPLIT[0], BundleItem("b.jpg", "test", references)


@pytest.mark.parametrize(
    ("metadata", "split", "told"),
    [
        ({}, SPLIT, None),
        ({"tokenizer": "karpathy"}, SPLIT, None),
        ({"images": '["7", "b.jpg"]'}, SPLIT, None),
        ({"images": '["b.jpg", "a.jpg"]'}, SPLIT, "images[0]: the split has 'a.jpg', the columns "),
        ({}, SPLIT[:1], "the split has 1 image, the columns 2"),
        ({}, (*SPLIT, BundleItem("c", "test", ("c",))), "the split has 3 images, the columns 2"),
        ({}, _other("a", "b"), "images[1]: 'b.jpg' has 2 references"),
        ({}, _other("a"), None),
        ({"tokenizer": "blanks"}, _other("a cat"), "images[1]: references[0] of 'b.jpg' has 3 tok"),
    ],
)
def test_columns_are_held_against_their_split(metadata, split, told, tmp_path):
    path = tmp_path / "columns.safetensors"
    path.write_bytes(columns(metadata=metadata))
    found = columns_values.find_split_difference(path, split, len(split))
    assert (found or "").startswith(told or "") if told else found is None


def test_the_words_of_pieces_are_held_against_their_split(tmp_path):
    path = tmp_path / "columns.safetensors"
    path.write_bytes(columns(metadata={"tokenizer": "karpathy"}, base=WITH_PIECES))
    texts = {"a.jpg": ("Acat!", "sat"), "b.jpg": ("acat sat",)}
    split = [BundleItem(image, "test", references) for image, references in texts.items()]
    assert columns_values.find_split_difference(path, split, 2) is None
    found = columns_values.find_split_difference(path, SPLIT, 2)
    assert found.startswith("images[0]: references[0] of 'a.jpg' has 3 tokens by the tokenizer ka")
    assert found.endswith("END included; the columns have 2")
