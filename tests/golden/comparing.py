"""What differs between answers, and what two tellings of the story call otherwise."""

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import count
from typing import Any
from urllib.parse import urlsplit

from golden.telling import Exchange

PRECISION = 1e-6  # relative, of scores on a machine of another kind
_RUN = re.compile(r"\b(?:ev|cp|pb|ln|st)_[A-Za-z0-9_-]{24}(?![A-Za-z0-9_-])")
_MODEL = re.compile(r"(?<=nneval@)[0-9a-f]{12}(?![0-9a-f])")  # by digests of what was learned
_TAG = re.compile(r'(?<=\.)[0-9]+(?="$)')
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")
_HEX = re.compile(r"(?<![0-9.])[0-9a-f]{12,}")  # and no fraction of a number
_NUMBER = re.compile(r"-?[0-9]+\.[0-9]+(?:e-?[0-9]+)?")
_TERMINAL = ("done", "failed", "canceled", "unavailable")
# What a quick task never told, a slow one did; and one that a busy machine does not end in a short
# task's time is attempted again.
_OF_THE_MOMENT = ("seconds", "progress", "attempts")
_PUT_BACK = re.compile(r'^prescore_attempts_total\{outcome="not short"\}.*\n', re.MULTILINE)


def differences(ours: Any, theirs: Any, *, exact: bool = True) -> list[str]:
    """Between two values of JSON: members in their order, numbers to the bit where `exact`."""
    return list(_differences(ours, theirs, "", exact))


def _differences(ours: Any, theirs: Any, place: str, exact: bool) -> Iterator[str]:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        if list(ours) != list(theirs):
            yield f"{place}: members {list(ours)!r:.300}, now {list(theirs)!r:.300}"
        for name in (name for name in ours if name in theirs):
            yield from _differences(ours[name], theirs[name], f"{place}/{name}", exact)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for at, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _differences(one, other, f"{place}/{at}", exact)
    elif not _are_equal(ours, theirs, exact):
        yield f"{place}: {ours!r:.300}, now {theirs!r:.300}"


def _are_equal(ours: Any, theirs: Any, exact: bool) -> bool:
    if type(ours) is type(theirs) and ours == theirs:
        return True
    if exact:
        return False
    if isinstance(ours, float) and isinstance(theirs, float):
        return _are_close(ours, theirs)
    if isinstance(ours, str) and isinstance(theirs, str):
        numbers = zip(_NUMBER.findall(ours), _NUMBER.findall(theirs), strict=False)
        return _NUMBER.sub("", ours) == _NUMBER.sub("", theirs) and all(
            _are_close(float(one), float(other)) for one, other in numbers
        )
    return False


def _are_close(ours: float, theirs: float) -> bool:
    return math.isclose(ours, theirs, rel_tol=PRECISION, abs_tol=PRECISION)


def without(answer: Any, pointers: Sequence[str]) -> Any:
    """An answer less what may differ; `*` is any one name or number."""
    return _without(answer, "", pointers)


def _without(value: Any, place: str, pointers: Sequence[str]) -> Any:
    if any(_matches(place, pointer) for pointer in pointers):
        return "may differ"
    if isinstance(value, dict):
        inside = {name: f"{place}/{name}" for name in value}
        return {
            name: _without(value[name], at, pointers)
            for name, at in inside.items()
            if not any(_matches(at, pointer) for pointer in pointers)
        }
    if isinstance(value, list):
        return [_without(each, f"{place}/{at}", pointers) for at, each in enumerate(value)]
    return value


def _matches(place: str, pointer: str) -> bool:
    parts, wanted = place.split("/"), pointer.split("/")
    return len(parts) == len(wanted) and all(map(fnmatchcase, parts, wanted))


def normal(exchanges: Sequence[Exchange], *, exact: bool) -> dict[str, Any]:
    """By their names the answers, with ids, times and durations in one form: the same for every
    telling. Not `exact`: digests, too, of what is computed.
    """
    names = _Names(exact=exact)
    return {exchange["name"]: names.answer(exchange) for exchange in exchanges}


def is_of_study(exchange: Exchange) -> bool:
    """A study adds its models up in the order of their runs' ids, which are drawn: the last bits
    differ from telling to telling, and so do the places of what is equal but for them.
    """
    return urlsplit(exchange["path"]).path.endswith("/correlations")


def _without_places(body: Any) -> Any:
    """The sheet has all rows; pages, which end among such equals, are left with what is not one."""
    if isinstance(body, str):
        rows = csv.DictReader(body.splitlines())
        return sorted([row["postgen"], row["pregen"], *list(row.values())[3:]] for row in rows)
    return without(body, ["/study/metrics/*/correlations"])


class _Names:
    """Runs are numbered as they come."""

    def __init__(self, *, exact: bool) -> None:
        self._exact = exact
        self._runs: dict[str, str] = {}

    def answer(self, exchange: Exchange) -> Any:
        answer = dict(exchange["answer"])
        body = answer.get("body")
        if is_of_study(exchange) and answer["status"] == 200:
            answer["body"] = _without_places(body)
        elif exchange["path"] == "/metrics":
            body = _PUT_BACK.sub("", body)
            answer["body"] = re.sub(r"[0-9.]+$", "", body, flags=re.MULTILINE)
        elif answer["headers"].get("content-type", "").startswith("text/event-stream"):
            answer["body"] = _outcomes(body)
        return self._value(answer, "")

    def _value(self, value: Any, name: str) -> Any:
        if value is None:
            return None
        if name in _OF_THE_MOMENT:
            return f"<{name}>"
        if name == "next":
            return "<cursor>"
        if isinstance(value, dict):
            names = _numbered(value)
            return {
                name: self._value(each, at)
                for name, (at, each) in zip(names, value.items(), strict=True)
            }
        if isinstance(value, list):
            return [self._value(each, "") for each in value]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        text = _RUN.sub(self._run, _TIME.sub("<time>", text))
        text = _MODEL.sub("<model>", text)
        text = _TAG.sub("<version>", text)
        return text if self._exact else _HEX.sub("<digest>", text)

    def _run(self, found: re.Match[str]) -> str:
        return self._runs.setdefault(found[0], f"<run {len(self._runs) + 1}>")


def _numbered(names: Iterable[str]) -> list[str]:
    """Names of an object's members; learned metrics among them are numbered as they come."""
    numbers = count(1)
    return [_MODEL.sub(lambda _: f"<model {next(numbers)}>", name) for name in names]


def _outcomes(stream: str) -> list[Any]:
    """What events say of tasks' ends, whatever order they came to it in."""
    found = []
    for block in stream.strip().split("\n\n"):
        event: Mapping[str, str] = dict(line.split(": ", 1) for line in block.split("\n"))
        data = json.loads(event["data"])
        if event["event"] != "task" or data["status"] in _TERMINAL:
            found.append([event["event"], data])
    return sorted(found, key=json.dumps)
