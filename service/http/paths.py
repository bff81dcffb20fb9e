"""Paths: the names of images in them, and advice for a path that is not there."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import Annotated

from fastapi import Path
from starlette.convertors import PathConvertor, register_url_convertor

LONGEST = 300  # characters of a path that is compared with others
_MOST = 3
_LEAST_ALIKE = 0.65  # of each part
_PREFIX = "/v1"
_PREFIXES = re.compile(r"api|v[0-9]+")
_KNOWN_AS: Mapping[str, Sequence[str]] = {  # by what other services call them
    "health": ["/livez", "/readyz"],
    "healthz": ["/livez", "/readyz"],
    "redoc": ["/docs"],
    "swagger": ["/docs"],
    "swagger.json": ["/openapi.json"],
}
_FIELDS = {  # of the answer itself
    *("error", "forecast", "gates", "health", "labels", "scores", "status", "verdict", "tasks"),
    *("captions", "features", "images", "splits", "versions"),
}


def suggest_paths(path: str, there: Collection[str]) -> str:
    """Suggest what to ask for instead of `path`; `there`: all paths, with parts such as `{id}`."""
    found: Sequence[str] = ()
    if len(path) <= LONGEST:
        found = _elsewhere(path, there) or _near(path.rstrip("/"), there)
    question = f"; did you mean {' or '.join(map(repr, found))}?" if found else "."
    return f"no path {path!r:.100}{question} The interface is under {_PREFIX}; /docs describes it"


def _elsewhere(path: str, there: Collection[str]) -> Sequence[str]:
    """The path in another place that has the same last word, or what this word names; none where
    several have it.
    """
    parts = _parts(path)
    if "/".join(parts) in _KNOWN_AS:
        return _KNOWN_AS["/".join(parts)]
    whole = set(_same_end(parts, there, whole=True))
    found = whole or _named(parts, there) or set(_same_end(parts, there, whole=False))
    return [*found] if len(found) == 1 else []


def _named(parts: Sequence[str], there: Collection[str]) -> Collection[str]:
    match parts:
        case ["datasets", name, *_, "health"]:
            return {f"{_PREFIX}/probes?dataset={name}"}
        case ["datasets", name, *_, runs] if f"{_PREFIX}/{runs}/{{id}}/cancel" in there:
            return {f"{_PREFIX}/{runs}?dataset={name}"}
        case [kind, name, field] if field in _FIELDS and _one_of(kind) & {*there}:
            return {f"{_PREFIX}/{kind}/{name}"}
    return ()


def _one_of(kind: str) -> set[str]:
    return {f"{_PREFIX}/{kind}/{{{name}}}" for name in ("id", "name", "digest")}


def _same_end(parts: Sequence[str], there: Collection[str], *, whole: bool) -> Iterator[str]:
    """Paths that end with the same word, with the asked values in them; with `whole` false also
    those of which the end is missing. Of a dataset's, one more part is the split.
    """
    for template in there:
        known = _parts(template)
        fixed = list(known)
        while not whole and _is_open(fixed[-1]):
            fixed.pop()
        if not parts or fixed[-1] != parts[-1]:
            continue
        left = list(parts)
        filled = {}
        for before, part in zip(["", *known], known, strict=False):
            if not _is_open(part):
                left = [each for each in left if each != part]
            elif before in parts[:-1]:
                filled[part] = parts[parts.index(before) + 1]
                left = [each for each in left if each != filled[part]]
        split = left if known[0] == "datasets" and filled else []
        if left == split and len(split) <= 1:
            address = "/".join(filled.get(part, part) for part in template.split("/"))
            address = address.replace(IMAGE, "{image}")
            yield "?split=".join([address, *split])


def _parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part]
    while parts and _PREFIXES.fullmatch(parts[0]):
        del parts[0]
    return parts


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


class _ImageNameConvertor(PathConvertor):
    regex = ".+"


register_url_convertor("name", _ImageNameConvertor())

IMAGE = "{image:name}"
ImageName = Annotated[str, Path(description="The image's name or id.", examples=["1000268201.jpg"])]
