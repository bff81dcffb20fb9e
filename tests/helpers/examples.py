"""Performs openapi/examples on a real service, as openapi/examples/README.md describes."""

import io
import json
import math
import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import httpx

from helpers.example_files import FOLDER

EXAMPLES = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(FOLDER.glob("*.json"))
}
UNDER_WAY, CANCELED = "submit-long-run", "cancel"  # it would take a minute
PRECISION = 1e-4
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+(?:e-?[0-9]+)?")
NAME_CHARACTERS = 16  # a varying text of this length is a name, which may occur again


@dataclass
class Story:
    """Performs each example once, after the examples that it needs."""

    client: httpx.Client
    files: dict[str, bytes]
    names: dict[str, str] = field(default_factory=dict)  # in the examples -> in the real answers
    told: dict[str, dict[str, Any]] = field(default_factory=dict)

    def answer(self, name: str) -> dict[str, Any]:
        """The real answer to an example, in the form of the examples."""
        if name not in self.told:
            example = EXAMPLES[name]
            for earlier in example.get("after", ()):
                self.answer(earlier)
            self.told[name] = self._perform(example)
            self.read(name)  # to learn the names in it
        return self.told[name]

    def read(self, name: str) -> "Reading":
        reading = Reading(EXAMPLES[name], self.names)
        reading.expected = reading.value(EXAMPLES[name]["response"], self.told[name], ())
        return reading

    def real(self, text: str) -> str:
        return _replaced(text, self.names)

    def _perform(self, example: dict[str, Any]) -> dict[str, Any]:
        request, written = example["request"], example["response"]
        answer = self.client.request(
            request["method"],
            self.real(request["path"]),
            headers={name: self.real(text) for name, text in request.get("headers", {}).items()},
            content=self._sent(request.get("body")),
        )
        found: dict[str, Any] = {"status": answer.status_code}
        if "headers" in written:
            found["headers"] = {name: answer.headers.get(name) for name in written["headers"]}
        return found | ({"body": _body(answer)} if answer.content else {})

    def _sent(self, body: Any) -> bytes | None:
        match body:
            case None:
                return None
            case {"$file": name}:
                return self.files[name]
            case {"$lines": lines}:
                return "\n".join(lines).encode()
        return self.real(json.dumps(body)).encode()


class Reading:
    """Compares an example with the real answer: differences, names, and the text to write."""

    def __init__(self, example: dict[str, Any], names: dict[str, str]) -> None:
        self._varies = example.get("varies", ())
        self._shortened = example.get("shortened", ())
        self._names = names
        self.differences: list[str] = []
        self.expected: Any = None

    def value(self, ours: Any, theirs: Any, place: tuple[str, ...]) -> Any:
        """`ours` if the real answer agrees; else the text to write, after noting a difference."""
        if _is_among(self._varies, place):
            if isinstance(ours, str) and isinstance(theirs, str) and len(ours) >= NAME_CHARACTERS:
                self._names[ours] = theirs
            return ours
        if isinstance(ours, dict) and isinstance(theirs, dict):
            return self._members(ours, theirs, place)
        if isinstance(ours, list) and isinstance(theirs, list):
            return self._items(ours, theirs, place)
        return ours if self._is_equal(ours, theirs) else self._differ(ours, theirs, place)

    def _members(self, ours: Any, theirs: Any, place: tuple[str, ...]) -> Any:
        shown = theirs.keys() & ours.keys() if _is_among(self._shortened, place) else theirs.keys()
        if shown != ours.keys():
            self._differ(list(ours), list(theirs), place)
        order = {name: None for name in (*ours, *theirs) if name in shown}
        return {
            name: self.value(ours[name], theirs[name], (*place, name))
            if name in ours
            else self._written(theirs[name])
            for name in order
        }

    def _items(self, ours: Any, theirs: Any, place: tuple[str, ...]) -> Any:
        if _is_among(self._shortened, place):
            rest = iter(theirs)
            missing = [one for one in enumerate(ours) if not self._comes(*one, rest, place)]
            return self._differ(ours, theirs, place) if missing else ours
        if len(ours) != len(theirs):
            return self._differ(ours, theirs, place)
        pairs = enumerate(zip(ours, theirs, strict=True))
        return [self.value(one, other, (*place, str(at))) for at, (one, other) in pairs]

    def _comes(self, at: int, one: Any, rest: Any, place: tuple[str, ...]) -> bool:
        for other in rest:
            attempt = Reading({"varies": self._varies, "shortened": self._shortened}, self._names)
            attempt.value(one, other, (*place, str(at)))
            if not attempt.differences:
                return True
        return False

    def _is_equal(self, ours: Any, theirs: Any) -> bool:
        if isinstance(ours, float) and isinstance(theirs, int | float):
            return _is_close(ours, theirs)
        if isinstance(ours, str) and isinstance(theirs, str):
            return _agree(_replaced(ours, self._names), theirs)
        return type(ours) is type(theirs) and ours == theirs

    def _differ(self, ours: Any, theirs: Any, place: tuple[str, ...]) -> Any:
        where = "".join(f"/{part}" for part in place)
        self.differences.append(f"{where}: written {ours!r:.300}, found {theirs!r:.300}")
        return self._written(theirs)

    def _written(self, theirs: Any) -> Any:
        """A real value in the form of an example: with the example's names, and rounded."""
        if isinstance(theirs, dict):
            return {name: self._written(value) for name, value in theirs.items()}
        if isinstance(theirs, list):
            return [self._written(value) for value in theirs]
        if isinstance(theirs, float):
            return float(f"{theirs:.6g}")
        if isinstance(theirs, str):
            return _replaced(theirs, {real: ours for ours, real in self._names.items()})
        return theirs


def text_of(value: Any, indent: int = 0) -> str:
    """JSON in which everything that fits is on one line."""
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + indent <= 96 or not isinstance(value, dict | list) or not value:
        return line
    blanks = " " * (indent + 2)
    if isinstance(value, list):
        inside = [blanks + text_of(item, indent + 2) for item in value]
        return "[\n" + ",\n".join(inside) + "\n" + " " * indent + "]"
    inside = [
        f"{blanks}{json.dumps(name, ensure_ascii=False)}: {text_of(item, indent + 2)}"
        for name, item in value.items()
    ]
    return "{\n" + ",\n".join(inside) + "\n" + " " * indent + "}"


def _body(answer: httpx.Response) -> Any:
    if answer.headers["content-type"].split(";")[0].endswith(("/json", "+json")):
        return answer.json()
    return {"$lines": io.StringIO(answer.text, newline=None).read().removesuffix("\n").split("\n")}


def _is_among(patterns: Any, place: tuple[str, ...]) -> bool:
    """Whether a place matches one of the JSON pointers, in which `*` is any name or index."""
    wanted = [pattern.split("/")[1:] for pattern in patterns]
    return any(len(parts) == len(place) and all(map(fnmatchcase, place, parts)) for parts in wanted)


def _is_close(ours: float, theirs: float) -> bool:
    return math.isclose(ours, theirs, rel_tol=PRECISION, abs_tol=PRECISION)


def _agree(ours: str, theirs: str) -> bool:
    """Whether texts are equal, except for small differences in decimal numbers."""
    numbers = zip(_DECIMAL.findall(ours), _DECIMAL.findall(theirs), strict=False)
    return _DECIMAL.sub("", ours) == _DECIMAL.sub("", theirs) and all(
        _is_close(float(one), float(other)) for one, other in numbers
    )


def _replaced(text: str, names: dict[str, str]) -> str:
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, names[name])
    return text
