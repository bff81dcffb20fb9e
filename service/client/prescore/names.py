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


def find_near_names(name: str, known: Iterable[str]) -> list[str]:
    """Find the known names that are most like it, the most alike first; case does not count."""
    if len(name) > LONGEST:
        return []
    written = {one.lower(): one for one, _ in zip(known, range(COMPARED), strict=False)}
    matches = get_close_matches(name.lower(), written, MOST, LEAST_ALIKE)
    return [written[match] for match in matches]


def suggest_name(name: str, known: Iterable[str]) -> str:
    """Ask whether a near name was meant; empty where none is near."""
    near = find_near_names(name, known)
    return f"did you mean {' or '.join(map(plain_text.quoted, near))}?" if near else ""


def check_known(kind: str, names: Collection[str], known: Collection[str]) -> None:
    """Raise for the first name that is not known."""
    for name in names:
        if name not in known:
            expected = suggest_name(name, known) or _list_known(known)
            raise InvalidArgument(f"unknown {kind} {plain_text.quoted(name)!s:.100}: {expected}")


def _list_known(known: Collection[str]) -> str:
    shown = ", ".join(name for name, _ in zip(known, range(SHOWN), strict=False))
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    return f"expected one of {shown}{more}"


def check_dataset_name(name: str) -> None:
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
