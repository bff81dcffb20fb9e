"""For a path that is not there: the paths that were probably meant."""

from collections.abc import Collection
from difflib import SequenceMatcher

LONGEST = 300  # characters of a path that is compared with others
_MOST = 3
_LEAST_ALIKE = 0.6  # of each part
_PREFIX = "/v1"


def advice(path: str, there: Collection[str]) -> str:
    """What to ask for instead of `path`; `there`: all paths, with parts such as `{id}` in them."""
    found = [] if len(path) > LONGEST else _near(path.rstrip("/"), there)
    question = f"; did you mean {' or '.join(map(repr, found))}?" if found else "."
    return f"no path {path!r:.100}{question} The interface is under {_PREFIX}; /docs describes it"


def _near(path: str, there: Collection[str]) -> list[str]:
    """The paths that are most like it, the most alike first, with its own words in their parts."""
    likeness: dict[str, float] = {}
    for written in (path, f"{_PREFIX}{path}"):
        for template in there:
            pairs = _pairs(written, template)
            alike = [_alike(given, part) for given, part in pairs]
            if min(alike, default=0.0) >= _LEAST_ALIKE:
                filled = "/".join(given if _is_open(part) else part for given, part in pairs)
                likeness[filled] = sum(alike)
    return sorted(likeness, key=lambda one: -likeness[one])[:_MOST]


def _pairs(path: str, template: str) -> list[tuple[str, str]]:
    """The parts of both beside each other; none where they have not as many."""
    asked, known = path.split("/"), template.split("/")
    return list(zip(asked, known, strict=True)) if len(asked) == len(known) else []


def _alike(given: str, part: str) -> float:
    if _is_open(part):
        return 1.0 if given else 0.0
    return SequenceMatcher(None, given, part).ratio()


def _is_open(part: str) -> bool:
    return part.startswith("{")
