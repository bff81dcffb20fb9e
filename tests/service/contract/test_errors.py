"""What errors say of a stranger's file."""

import pytest

from service.contract.errors import ConfigInvalid, InvalidRequest, RequestRefused
from service.contract.formats import strict_json
from service.contract.formats.checkpoint_header import FeatureEncoder


@pytest.mark.parametrize("power", ["\x1b[2J", "\x07", "\n", "\u202e", "\u2028", "\ud800"])
def test_a_refusal_is_one_line_of_plain_text_whatever_it_repeats(power):
    said = RequestRefused(f"expected a name, found a{power}b").detail
    assert said.isprintable()
    assert said.startswith("expected a name, found a\\")
    found = InvalidRequest("wrong", [("/a", f"found a{power}b")])
    assert found.problems[0][1].isprintable()


def test_the_name_of_an_unknown_field_is_told_in_plain_text():
    text = '{"name": "a", "digest": "b", "\\u001b[2J": 1}'
    with pytest.raises(ConfigInvalid) as caught:
        strict_json.parse_model(FeatureEncoder, text, "encoder", "/encoder")
    assert caught.value.detail.isprintable()
    assert "\\x1b[2J" in caught.value.detail
