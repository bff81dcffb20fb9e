"""Nothing in a request's body is without a bound, whichever model it is of."""

import pytest

from helpers.interface import DOCUMENT, operations

BOUNDED = ("maxLength", "enum", "const", "pattern", "format")


def _bodies():
    for method, path, operation in operations():
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            yield f"{method} {path}", content["application/json"]["schema"]


def _parts(schema, path, seen):
    """Each schema that a value of this one is made of, with the way to it."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in seen:
            return
        schema, seen = DOCUMENT["components"]["schemas"][name], {*seen, name}
    yield path, schema
    for key in ("anyOf", "oneOf", "allOf"):
        for each in schema.get(key, ()):
            yield from _parts(each, path, seen)
    for name, each in schema.get("properties", {}).items():
        yield from _parts(each, f"{path}/{name}", seen)
    for key in ("items", "additionalProperties", "propertyNames"):
        if isinstance(schema.get(key), dict):
            yield from _parts(schema[key], f"{path}/*", seen)
    for index, each in enumerate(schema.get("prefixItems", ())):
        yield from _parts(each, f"{path}/{index}", seen)


@pytest.mark.parametrize(
    ("route", "schema"), [*_bodies()], ids=lambda x: x if type(x) is str else ""
)
def test_every_list_object_and_text_of_a_body_has_a_bound(route, schema):
    parts = list(_parts(schema, "", set()))
    assert len(parts) > 1
    for path, part in parts:
        kind = part.get("type")
        if kind == "array":
            assert "maxItems" in part, (route, path)
        if kind == "object":
            closed = part.get("additionalProperties") is False
            assert closed or "maxProperties" in part, (route, path)
        if kind == "string" and "anyOf" not in part:
            assert any(word in part for word in BOUNDED), (route, path, part)
