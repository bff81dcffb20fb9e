"""Near names: for a name that is not known, those that were probably meant."""

import difflib
from collections.abc import Iterable
from itertools import islice

QUESTION = "; did you mean"
MOST = 3
LEAST_ALIKE = 0.6
LONGEST = 100  # characters that are compared; the search takes the square of them
COMPARED = 2000  # names


def question(name: str, known: Iterable[str]) -> str:
    """`; did you mean …?` with the most alike names, the most alike first; empty where none is.
    Small and capital letters are alike.
    """
    compared = {each.lower(): each for each in islice(known, COMPARED)}
    found = difflib.get_close_matches(name[:LONGEST].lower(), compared, MOST, LEAST_ALIKE)
    return f"{QUESTION} {' or '.join(compared[each] for each in found)}?" if found else ""
