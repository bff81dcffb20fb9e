"""Two readers must not see two different things in the same JSON."""

import contextlib
import json
import math
import re

import pytest

from service.contract.errors import RequestRefused
from service.contract.formats import strict_json


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (' \t\r\n{"": [1, 2.5, true, null, "\u2028"]}\n', {"": [1, 2.5, True, None, "\u2028"]}),
        ("999999999999999999", 999999999999999999),
        (r'"\ud83d\ude00"', "😀"),
        (r'"\\ud800"', "\\ud800"),
    ],
)
def test_json_is_read_as_it_stands(text, value):
    found = strict_json.parse_json(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize("text", ["-0", "1000000000000000000", "-9999999999999999999"])
def test_an_integer_that_others_read_as_a_float_is_a_float(text):
    assert type(strict_json.parse_json(text)) is float


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected JSON, found an empty text"),
        ("[1,\n 2\n", "a comma, ] or } at line 3, column 1, found the end: is it cut off?"),
        ('{"a": ', "expected JSON with a value at column 7, found the end: is it cut off?"),
        ('{"a": "bc\n', "the text that begins at column 7, found the end: is it cut off?"),
        ('[1,\n "bc\n', "the text that begins at line 2, column 2, found the end: is it cut off?"),
        ("a caption", "expected JSON with a value at column 1, found 'a caption'"),
        ("{} {}\n", "expected JSON with nothing more at column 4, found '{}'"),
        ("{'a': 1}", """in double quotes at column 2, found "'a': 1}"; JSON has double quotes"""),
        ('{"a": 1,}', "quotes at column 9, found '}'; no comma may stand before it"),
        ("[1,\n]", "a value at line 2, column 1, found ']'; no comma may stand before it"),
        ('{"a" 1}', "expected JSON with a colon at column 6, found '1}'"),
        ('{"a": None}', "at column 7, found 'None}'; JSON has true, false and null"),
        (
            '["a", "b]',
            "a closing quote for the text that begins at column 7, found the end: is it cut off?",
        ),
        ('"a\nb"', r"\n or \t for a line break or tab in text at line 1, column 3, found '\n'"),
        ('"a\\x"', r"expected JSON with an escape such as \n, \" or \u00e9 at column 3"),
        (r'"\u12g4"', r"expected JSON with an escape such as \n, \" or \u00e9 at column 3"),
        ("\ufeff{}", "expected JSON with no byte order mark (BOM) at column 1"),
        ("NaN", "NaN is not JSON"),
        ("[-Infinity]", "-Infinity is not JSON"),
        ("[1e999]", "expected a number that 64 bits can hold, found 1e999"),
        ("1" * 400, "expected a number that 64 bits can hold, found 11111"),
        ('{"a": 1, "b": 2, "a": 3}', "expected every key once, found 'a' 2 times"),
        (r'{"a": 1, "\u0061": 3}', "expected every key once, found 'a' 2 times"),
        ("[" * 100_000, "nesting too deep"),
    ],
)
def test_what_another_reader_may_take_otherwise_is_refused(text, message):
    with pytest.raises(strict_json.NotJson) as caught:
        strict_json.parse_json(text)
    assert message in str(caught.value)
    assert not re.search(r"Expecting|delimiter|Extra|Unterminated|Invalid", str(caught.value))


def test_what_another_python_says_in_other_words_is_told_in_them():
    error = json.JSONDecodeError("Illegal trailing comma before end of array", "[1,]", 2)
    assert strict_json._told(error) == (
        "expected JSON with no illegal trailing comma before end of array at column 3, found ',]'"
    )


def test_a_line_of_a_file_is_told_with_its_own_number_alone():
    with pytest.raises(RequestRefused, match=r"^line 7: expected JSON with a value at column 7, f"):
        strict_json.parse_json_line(7, b'{"a": }\n', RequestRefused)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (r'"\ud800"', ""),
        (r'["a", "\udfff"]', "/1"),
        (r'{"a": [{}, [], {"b": "\uD83D x"}]}', "/a/2/b"),
        (r'{"x": {"y": 1}, "a": {"\ud800": 1}}', "/a"),
        (r'["\ude00\ud83d"]', "/0"),
    ],
)
def test_a_lone_surrogate_is_refused_with_its_place(text, where):
    with pytest.raises(strict_json.NotJson, match=r"^expected text, found a lone sur") as caught:
        strict_json.parse_json(text)
    assert caught.value.where == where


@pytest.mark.long
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_nesting_of_any_depth_is_read_or_refused_and_never_breaks_the_stack(opening, closing):
    for depth in range(5, 1100, 5):
        with contextlib.suppress(strict_json.NotJson):
            strict_json.parse_json(opening * depth + r'"\ud83d\ude00"' + closing * depth)
        with pytest.raises(strict_json.NotJson, match=r"surrogate|nesting"):
            strict_json.parse_json(opening * depth + r'"\ud800"' + closing * depth)


def test_the_deepest_value_that_can_be_read_can_be_shown_in_a_message():
    value = []
    with contextlib.suppress(strict_json.NotJson):
        for depth in range(2, 2000):
            value = strict_json.parse_json("[" * depth + "]" * depth)
    assert 500 < repr(value).count("[") < 1999


@pytest.mark.parametrize("value", [-math.inf, math.inf, math.nan])
def test_a_number_that_json_cannot_write_is_null(value):
    """A model may give a word no probability at all: its logarithm is minus infinity."""
    assert strict_json.replace_infinite(value) is None
    held = {"a": [value, -0.5, {"b": (value, "inf", True, None, 3)}]}
    written = json.dumps(strict_json.replace_infinite(held), allow_nan=False)
    assert written == '{"a": [null, -0.5, {"b": [null, "inf", true, null, 3]}]}'
