"""Near names: for a name that is not known, those that were probably meant."""

import difflib
from collections.abc import Iterable, Sequence
from itertools import islice

QUESTION = "; did you mean"
MOST = 3
LEAST_ALIKE = 0.6
LEAST_PART = 4  # characters of a part of a name
LONGEST = 100  # characters that are compared; the search takes the square of them
COMPARED = 2000  # names


def question(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` with the most alike names, the most alike first; empty where none is.
    Small and capital letters are alike.
    """
    return asked(_alike(name, known))


def question_of_label(wanted: str, known: Iterable[str]) -> str:
    """The same for a label, NAME=VALUE: by its value, where its name is known, else by its name."""
    name, _, value = wanted.partition("=")
    values: dict[str, list[str]] = {}
    for each in islice(known, COMPARED):
        values.setdefault(each.partition("=")[0], []).append(each.partition("=")[2])
    if name in values:
        return asked([f"{name}={one}" for one in _alike(value, values[name])])
    return asked(
        [
            f"{near}={one}"
            for near in _alike(name, values)
            for one in _alike(value, values[near]) or values[near]
        ][:MOST]
    )


def _alike(name: str, known: Iterable[str]) -> list[str]:
    compared = {each.lower(): each for each in islice(known, COMPARED)}
    found = difflib.get_close_matches(name[:LONGEST].lower(), compared, MOST, LEAST_ALIKE)
    return [compared[each] for each in found]


def question_of_part(name: str, known: Iterable[str]) -> str:
    """The same with the first names of which the name is a part."""
    if not LEAST_PART <= len(name) <= LONGEST:
        return ""
    return asked(list(dict.fromkeys(each for each in known if name.lower() in each))[:MOST])


def asked(names: Sequence[str]) -> str:
    """The question with these names; empty where there are none."""
    return f"{QUESTION} {' or '.join(names)}?" if names else ""
