"""Requests made up from openapi.json: right ones, nearly right ones, and wrong ones."""

import json
import random
import re
from urllib.parse import quote

from helpers.interface import DOCUMENT, operations

ODD_TEXTS = [
    "", " ", "a" * 300, "😀", "é\u0301", "\x00", "\x1b[31m", "::add-mask::a", "=1+1", "../../etc",
    "null", "0", "-1", "1e999", "\u202e", "\ud7ff", "a\nb", "%00", "'; --", "{}", "*",
]  # fmt: skip
ODD_VALUES = [None, True, False, 0, -1, 1.5, 1e308, 2**63, 2**70, [], {}, [[]], [None], {"a": 1}]
# Streams and long polls are meant to take their time.
LEFT_OUT = ("stream_events", "stream_team_events")


class Requests:
    """`known`: values of a parameter or a field that exist, by its name."""

    def __init__(self, seed, known):
        self._random = random.Random(seed)
        self._known = known
        self._operations = [
            (method, path, operation)
            for method, path, operation in operations()
            if operation["operationId"] not in LEFT_OUT
        ]

    def one(self):
        """Method, path with query, headers, body."""
        method, path, operation = self._random.choice(self._operations)
        query = []
        for parameter in operation.get("parameters", ()):
            value = self._parameter(parameter)
            if parameter["in"] == "path":
                path = path.replace(f"{{{parameter['name']}}}", quote(str(value), safe=""))
            elif parameter["in"] == "query" and self._random.random() < 0.4:
                query.append(f"{quote(parameter['name'])}={quote(str(value))}")
        address = f"{path}?{'&'.join(query)}" if query else path
        headers, body = self._body(operation)
        return method, re.sub(r"[{}]", "", address), headers, body

    def _parameter(self, parameter):
        known = self._known.get(parameter["name"])
        if known and self._random.random() < 0.7:
            return self._random.choice(known)
        if self._random.random() < 0.3:
            return self._random.choice(ODD_TEXTS)
        return self._value(parameter["name"], parameter["schema"], 0)

    def _body(self, operation):
        contents = operation.get("requestBody", {}).get("content", {})
        if not contents:
            return {}, b""
        kind, content = self._random.choice(list(contents.items()))
        if "json" not in kind or content["schema"].get("format") == "binary":
            return {"Content-Type": kind}, self._random.randbytes(self._random.randrange(200))
        value = self._value("", content["schema"], 0)
        text = json.dumps(value, ensure_ascii=self._random.random() < 0.5)
        data = text.encode("utf-8", "surrogatepass")
        if self._random.random() < 0.05:
            data = data[: self._random.randrange(len(data) + 1)]
        return {"Content-Type": "application/json"}, data

    def _value(self, name, schema, depth):
        if self._random.random() < 0.04:
            return self._random.choice([*ODD_VALUES, *ODD_TEXTS])
        if name in self._known and self._random.random() < 0.8:
            return self._random.choice(self._known[name])
        if "$ref" in schema:
            return self._value(name, _referred(schema["$ref"]), depth)
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return self._value(name, self._random.choice(schema[several]), depth)
        if "enum" in schema:
            return self._random.choice(schema["enum"])
        if "const" in schema:
            return schema["const"]
        return self._of_type(schema, depth)

    def _of_type(self, schema, depth):
        draw = self._random
        match schema.get("type"):
            case "object" if "properties" in schema:
                return self._object(schema, depth)
            case "object":
                keys = [draw.choice(["a", "branch", *ODD_TEXTS]) for _ in range(draw.randrange(4))]
                inner = schema.get("additionalProperties") or {}
                inner = inner if isinstance(inner, dict) else {}
                return {key: self._value("", inner, depth + 1) for key in keys}
            case "array":
                count = draw.choice([0, 1, 1, 2, 3, 30]) if depth < 4 else 0
                items = schema.get("items") or {}
                return [self._value("", items, depth + 1) for _ in range(count)]
            case "integer" | "number":
                low, high = schema.get("minimum", -10), schema.get("maximum", 1000)
                return draw.choice(
                    [low, high, low - 1, high + 1, draw.randint(int(low), int(high))]
                )
            case "boolean":
                return draw.random() < 0.5
            case "null":
                return None
        examples = schema.get("examples")
        return draw.choice(examples if examples and draw.random() < 0.7 else ODD_TEXTS)

    def _object(self, schema, depth):
        needed = schema.get("required", ())
        found = {
            name: self._value(name, inner, depth + 1)
            for name, inner in schema["properties"].items()
            if self._random.random() < (0.97 if name in needed else 0.25)
        }
        if self._random.random() < 0.05:
            found[self._random.choice(ODD_TEXTS)] = 1
        return found


def _referred(reference):
    found = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found
