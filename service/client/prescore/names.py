"""Names: near ones, for a name that is not known, and names that a new dataset may have."""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

from prescore import plain_text
from prescore.errors import InvalidArgument
from prescore.models.identifiers import DATASET_NAME

MOST = 3
LEAST_ALIKE = 0.6
LONGEST = 200  # characters of a name; the search takes the square of it
COMPARED = 2000  # names
SHOWN = 40


def near(name: str, known: Iterable[str]) -> list[str]:
    """The known names that are most like it, the most alike first; case does not count."""
    if len(name) > LONGEST:
        return []
    written = {one.lower(): one for one, _ in zip(known, range(COMPARED), strict=False)}
    found = get_close_matches(name.lower(), written, MOST, LEAST_ALIKE)
    return [written[one] for one in found]


def hint(name: str, known: Iterable[str]) -> str:
    """A question that names them; empty where none is near."""
    found = near(name, known)
    return f"did you mean {' or '.join(map(plain_text.quoted, found))}?" if found else ""


def _expected(known: Collection[str]) -> str:
    shown = ", ".join(name for name, _ in zip(known, range(SHOWN), strict=False))
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return f"expected one of {shown}{more}"


def check_known(what: str, given: Collection[str], known: Collection[str]) -> None:
    """Raise for the first name that is not known."""
    for name in given:
        if name not in known:
            expected = hint(name, known) or _expected(known)
            raise InvalidArgument(f"unknown {what} {plain_text.quoted(name)!s:.100}: {expected}")


def check_dataset(name: str) -> None:
    """Raise for a name that no dataset can have, with a near name that one can have."""
    if re.fullmatch(DATASET_NAME, name):
        return
    alone = re.sub("[^A-Za-z0-9._-]+", "-", re.split("[/@]", name)[0])
    near_name = re.search(DATASET_NAME, alone)
    raise InvalidArgument(
        "expected a dataset's name of at most 100 letters, digits, '.', '_' and '-', without "
        f"split, version and blanks; found {name!r:.120}"
        + (f": write {near_name[0]}" if near_name else "")
    )
