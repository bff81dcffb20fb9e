"""The text of a key: made, read, and what is none."""

import hashlib
import string
from collections.abc import Callable

import pytest

from service.access import keys


def test_a_key_is_read_as_what_it_was_made_of() -> None:
    text = keys.make_key_text()
    read = keys.parse_key_text(text)
    assert read is not None
    assert text.split("_")[:2] == ["psk", read.id]
    assert read.hash == hashlib.sha256(text.encode()).hexdigest()
    assert len(text) == keys.LONGEST_KEY_TEXT


def test_no_two_keys_are_alike_and_all_digits_occur() -> None:
    made = [keys.make_key_text() for _ in range(500)]
    secrets = [text.split("_")[2][:43] for text in made]
    assert len({text.split("_")[1] for text in made}) == len(set(secrets)) == 500
    seen = "".join(secret[1:] for secret in secrets)  # 62⁴³ is more than 2²⁵⁶: the first is small
    counts = [seen.count(digit) for digit in string.digits + string.ascii_letters]
    assert min(counts) > 0.7 * len(seen) / 62
    assert max(counts) < 1.3 * len(seen) / 62


@pytest.mark.parametrize("place", range(17, 65))
def test_a_key_with_another_letter_or_cut_off_is_none(place: int) -> None:
    text = keys.make_key_text()
    other = "a" if text[place] != "a" else "b"
    assert keys.parse_key_text(text[:place] + other + text[place + 1 :]) is None
    assert keys.parse_key_text(text[:place]) is None


CHANGES: list[Callable[[str], str]] = [
    lambda text: f"{text}a",
    lambda text: f"{text}\n",
    lambda text: f" {text}",
    lambda text: text[:-1] + "\u0660",  # another alphabet's digit
    lambda text: text.replace("_", "-"),
    lambda _: "",
    str.upper,
]


@pytest.mark.parametrize("changed", CHANGES)
def test_a_key_that_has_more_or_other_letters_is_none(changed: Callable[[str], str]) -> None:
    assert keys.parse_key_text(changed(keys.make_key_text())) is None
