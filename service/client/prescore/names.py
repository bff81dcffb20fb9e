"""Near names: for a name that is not known, those that were probably meant."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from prescore import plain_text
from prescore.errors import InvalidArgument

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
