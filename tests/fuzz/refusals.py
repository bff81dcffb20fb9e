"""What every refusal holds to, whatever was refused: an error of ours, told in plain text."""

import re
from collections.abc import Callable
from typing import Any, TypeVar

from prescore import plain_text
from service.contract import errors
from service.contract.errors import RequestRefused

LONGEST = 4000  # characters of a refusal, whatever the input has

Found = TypeVar("Found")
_OURS = {name: each for name, each in vars(errors).items() if isinstance(each, type)}
_OF_MEMORY = re.compile(r"takes more than [0-9]+ MB of memory|takes more than [0-9]+ seconds")


def refused_or(read: Callable[[], Found]) -> Found | RequestRefused:
    """What was read, or why it was refused; anything else is raised."""
    try:
        return read()
    except RequestRefused as refused:
        check(refused.detail, refused.pointer)
        return refused


def check(detail: str, pointer: str | None) -> None:
    """AssertionError for a refusal that is too long or has characters with power."""
    for text in (detail, pointer or ""):
        assert len(text) <= LONGEST, f"a refusal of {len(text):,} characters"
        text.encode()
    assert plain_text.is_plain(detail), f"characters with power in {detail!r}"


def check_told(answer: dict[str, Any]) -> None:
    """The same for what a judge has answered, which has facts or a refusal."""
    assert answer.keys() in ({"facts"}, {"refused", "detail", "at"}), answer
    if "refused" in answer:
        assert issubclass(_OURS[answer["refused"]], RequestRefused), answer
        check(answer["detail"], answer["at"])
        assert not _OF_MEMORY.search(answer["detail"]), answer
