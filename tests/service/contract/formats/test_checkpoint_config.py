"""Config, encoder and vocabulary (T43): what they claim is judged, and nothing is allocated."""

import io
import json

import pytest

from helpers.contract_files import WORDS, checkpoint, entry, refused, safetensors_file
from service.contract import errors
from service.contract.formats import checkpoint_header, vocabularies


def judge(content):
    return checkpoint_header.parse_checkpoint_header(io.BytesIO(content), len(content))


def refused_metadata(name, text, error, *words, pointer=""):
    caught = refused(lambda: judge(checkpoint(metadata={name: text})), error, *words)
    assert caught.pointer == f"/__metadata__/{name}{pointer}"


def config(**fields):
    whole = {"cell": "gru", "size": 2, "feature_size": 3, **fields}
    return json.dumps({key: value for key, value in whole.items() if value != "absent"})


@pytest.mark.parametrize(
    ("text", "words", "pointer"),
    [
        (config(size=2**31), ("config/size", "at most 16384", "2147483648"), "/size"),
        (config(size=0), ("config/size", "at least 1", "found 0"), "/size"),
        (config(size=True), ("config/size", "whole number", "found true"), "/size"),
        (config(size=2.0), ("config/size", "whole number", "found 2.0"), "/size"),
        (config(size="absent"), ("config/size", "expected a value"), "/size"),
        (config(feature_size=2**31), ("at most 1048576",), "/feature_size"),
        (config(image_size=2), ("config/image_size", "the image vector of init"), "/image_size"),
        (config(cell="rnn"), ("config/cell", "'lstm' or 'torch_gru'", "found 'rnn'"), "/cell"),
        (config(layers=10**6), ("config/layers", "unknown field; expected one of cell"), "/layers"),
        (config(**{"k" * 5000: "v" * 5000}), ("config/kkk", "unknown field"), "/" + "k" * 99),
        ("[]", ("config", "an object", "found a list"), ""),
        ('{"size": 2, "size": 3}', ("every key once", "'size' 2 times"), ""),
    ],
)
def test_a_config_that_is_not_one_is_refused_with_its_field(text, words, pointer):
    refused_metadata("config", text, errors.ConfigInvalid, *words, pointer=pointer)


@pytest.mark.parametrize(
    ("text", "words", "pointer"),
    [
        ('{"name": "vgg"}', ("encoder/digest", "expected a value"), "/digest"),
        ('{"name": "", "digest": "x"}', ("encoder/name", "at least 1 character, found 0"), "/name"),
        ('{"name": "x", "digest": 5}', ("encoder/digest", "a text", "found 5"), "/digest"),
        (json.dumps({"name": "x", "digest": "x" * 201}), ("at most 200",), "/digest"),
        ('{"name": "x", "digest": "y", "layer": 5}', ("encoder/layer", "unknown field"), "/layer"),
        ('"vgg"', ("encoder", "found 'vgg'"), ""),
    ],
)
def test_an_encoder_that_is_not_one_is_refused_with_its_field(text, words, pointer):
    refused_metadata("encoder", text, errors.ConfigInvalid, *words, pointer=pointer)


@pytest.mark.parametrize(
    ("words", "message", "index"),
    [
        (["<>", "<unk>", "a", "b", "a"], "word 4: 'a' is also word 2", 4),
        (["<>", "<unk>", ""], "word 2: '' is empty", 2),
        (["<>", "<unk>", "x" * 257], "has 257 bytes, at most 256", 2),
        (["<>", "<unk>", "é" * 129], "has 258 bytes, at most 256", 2),
        *(
            (["<>", "<unk>", blank], f"word 2: {blank!r} has a blank in it", 2)
            for blank in ("a b", " a", "a ", " ", "a\n", "a\x1c", "\u00a0", "a\u2028b", "\u3000")
        ),
    ],
)
def test_a_word_that_captions_cannot_hold_is_refused_with_its_index(words, message, index):
    text = json.dumps(words)
    refused_metadata("vocabulary", text, errors.VocabularyInvalid, message, pointer=f"/{index}")


def test_words_of_any_script_and_of_256_bytes_are_words():
    words = ["<>", "<unk>", "é", "e\u0301", "猫", "😀", "\u200f", "|||", "x" * 256, "[", '"', "\\"]
    text = json.dumps(words, ensure_ascii=False)
    content = checkpoint(words=words, metadata={"vocabulary": text})
    assert judge(content).description.vocabulary == tuple(words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        *((odd, ("a JSON list of strings and nothing else",)) for odd in (
            "", "5", "null", '"abc"', "{}", '{"a": "b"}', '["a", "b", 5]', '["a", "b", 1.5]',
            '["a", "b", null]', '["a", "b", true]', '["a", "b", NaN]', '["a", "b", ["c"]]',
            '["a", "b", {}]', '["a", "b"] x', "['a', 'b']", "a b c", '[["a", "b"]]')),
        ("[]", ("at least the edge token and UNK", "found none")),
        ('["a"]', ("at least the edge token and UNK", "found one entry")),
        ('["a", "b"', ("vocabulary: expected JSON", "at column")),
        ('"a", "b"[]', ("vocabulary: expected JSON", "nothing more")),
        ('["a", "b",]', ("vocabulary: expected JSON", "at column")),
    ],
)  # fmt: skip
def test_a_vocabulary_that_is_no_list_of_words_is_refused(text, words):
    refused_metadata("vocabulary", text, errors.VocabularyInvalid, *words)


def test_more_words_than_the_limit_are_counted_and_not_parsed():
    text = "[" + '"",' * vocabularies.MAX_VOCABULARY + '""]'
    refused_metadata("vocabulary", text, errors.HeaderTooLarge, "vocabulary", "250001", "250000")


@pytest.mark.long
def test_a_vocabulary_of_the_largest_size_is_read():
    words = [*WORDS, *(f"{n:x}" for n in range(16**4, 16**4 + 250_000 - len(WORDS)))]
    text = json.dumps(words, separators=(",", ":"))
    assert judge(checkpoint(words=words, metadata={"vocabulary": text})).description.vocabulary[-1]


def test_shapes_of_a_petabyte_are_refused_by_the_length_of_the_file():
    header = {"image.weight": entry("F32", [10**8, 10**8], 0, 4 * 10**16)}
    huge = safetensors_file(header)
    refused(lambda: judge(huge), errors.TensorLayout, "take 40000000000000000", "0 follow")
