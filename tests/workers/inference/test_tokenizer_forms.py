"""How much longer a text may become by a tokenizer's form, against what the library makes of it."""

import json

import pytest
from tokenizers import Tokenizer

from helpers import tokenizer_files
from service.contract.errors import InvalidPackage
from workers.inference import tokenizer_forms
from workers.inference.tokenizer_forms import MOST_GROWTH


def _replace(replaced, content, kind="String"):
    return {"type": "Replace", "pattern": {kind: replaced}, "content": content}


def _sequence(*steps):
    return {"type": "Sequence", "normalizers": list(steps)}


GROWING = [
    (_replace("a", "bb"), 2),
    (_replace("aa", "b"), 1),
    (_replace("ab", "abc"), 2),
    (_replace("", "bb"), 3),
    (_replace("x*", "yz", "Regex"), 3),
    (_sequence(*[_replace("a", "aa")] * 5), 32),
    (_sequence(_sequence(_replace("a", "bbb")), _replace("b", "cccc")), 12),
    ({"type": "Lowercase"}, 1),
    (None, 1),
    ([], 1),
]


@pytest.mark.parametrize(("step", "growth"), GROWING)
def test_growth_is_a_bound_of_what_the_library_makes(step, growth):
    assert tokenizer_forms.find_growth(step) == growth
    found = json.loads(tokenizer_files.byte_pieces().to_str())
    if isinstance(step, dict):
        made = Tokenizer.from_str(json.dumps({**found, "normalizer": step})).normalizer
        for text in ("a" * 50, "ab" * 25, "xyx"):
            assert len(made.normalize_str(text)) <= growth * (len(text) + 1)


@pytest.mark.parametrize("part", ["normalizer", "decoder"])
@pytest.mark.parametrize("steps", [31, 10_000])
def test_what_doubles_again_and_again_is_refused_without_being_tried(part, steps):
    lists = {"normalizer": "normalizers", "decoder": "decoders"}
    step = {"type": "Sequence", lists[part]: [_replace("a", "aa")] * steps}
    text = json.dumps({part: step})
    with pytest.raises(InvalidPackage, match=f"its {part} may make more than {MOST_GROWTH} char"):
        tokenizer_forms.check_growth(text, "tokenizer.json")


@pytest.mark.parametrize("text", ["no json", "[" * 100_000, "[]", "7", '{"normalizer": 7}', "{}"])
def test_what_is_no_tokenizer_is_left_to_the_library(text):
    tokenizer_forms.check_growth(text, "tokenizer.json")


@pytest.mark.parametrize("kind", tokenizer_files.KINDS)
def test_tokenizers_in_use_grow_little(kind):
    found = json.loads(tokenizer_files.KINDS[kind]().to_str())
    for part in ("normalizer", "decoder"):
        assert tokenizer_forms.find_growth(found[part]) <= 4
