"""Checks that answers of the service are as openapi.json describes them."""

import json
import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

import httpx
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry
from referencing.jsonschema import DRAFT202012

PUBLISHED = Path(__file__).resolve().parents[2] / "openapi" / "openapi.json"
DOCUMENT = json.loads(PUBLISHED.read_text(encoding="utf-8"))
_REGISTRY = Registry().with_resource("urn:openapi", DRAFT202012.create_resource(DOCUMENT))


def operations():
    """All (method, path, operation), with the method in capitals."""
    for path, item in DOCUMENT["paths"].items():
        for method, operation in item.items():
            yield method.upper(), path, operation


def find(method, url):
    """The path and the operation of a request; None where the document has none. Routes are found
    by the path without its percent signs: an escaped slash is a slash.
    """
    path = unquote(urlsplit(url).path)
    for known, template, operation in operations():
        pattern = re.sub(r"\\{(\w+)\\}", _part, re.escape(template))
        if known == method and re.fullmatch(pattern, path, re.DOTALL):
            return template, operation
    return None


def _part(name):
    return ".+" if name[1] == "image" else "[^/]+"


def check(response: httpx.Response) -> None:
    """Check status, headers and body of an answer; used in `event_hooks`, for every answer."""
    found = find(response.request.method, str(response.request.url))
    if found is None:
        assert response.status_code in (404, 405), response.request.url
        return
    path, operation = found
    place = f"{response.request.method} {path} {response.status_code}"
    assert str(response.status_code) in operation["responses"], f"undocumented: {place}"
    documented = operation["responses"][str(response.status_code)]
    _check_headers(place, documented["headers"], response.headers)
    media_type = response.headers.get("content-type", "").split(";")[0]
    contents = documented.get("content", {})
    if response.request.method == "HEAD" or not contents:
        return
    assert media_type in contents, f"undocumented: {place} {media_type}"
    if media_type != "text/event-stream":  # the reader checks them one by one
        response.read()
        check_content(place, contents[media_type]["schema"], media_type, response.text)
    if media_type.endswith("json"):
        assert re.search(r"[^\n]\n\Z", response.text), f"{place}: no newline at the end, or several"
    if response.status_code >= 400:
        code = response.json()["code"]
        assert f"`{code}`" in documented["description"], f"undocumented: {place} {code}"


def check_content(place, schema, media_type, text):
    value = json.loads(text) if media_type.endswith(("/json", "+json")) else text
    check_value(place, schema, value)


def check_value(place, schema, value):
    wrong = next(_validator(json.dumps(schema)).iter_errors(value), None)
    assert wrong is None, f"{place}: {wrong.json_path}: {wrong.message[:300]}"


def check_event(event):
    """Check one server-sent event, as {"id", "event", "data"}, and its data."""
    responses = DOCUMENT["paths"]["/v1/evaluations/{id}/events"]["get"]["responses"]
    schema = responses["200"]["content"]["text/event-stream"]["schema"]
    check_value("event", schema, event)
    kinds = {kind["properties"]["event"]["const"]: kind for kind in schema["oneOf"]}
    content = kinds[event["event"]]["properties"]["data"]["contentSchema"]
    check_value(event["event"], content, json.loads(event["data"], parse_constant=_no_json))


def _check_headers(place, documented, headers):
    for name, reference in documented.items():
        header = DOCUMENT["components"]["headers"][reference["$ref"].rsplit("/", 1)[1]]
        text = headers.get(name)
        assert text is not None or not header["required"], f"{place} has no {name}"
        if text is not None:
            is_number = header["schema"]["type"] == "integer"
            check_value(f"{place} {name}", header["schema"], int(text) if is_number else text)
    for name in ("ETag", "Location", "Retry-After", "Preference-Applied"):
        assert name not in headers or name in documented, f"undocumented: {place} {name}"


@cache
def _validator(schema):
    absolute = json.loads(schema.replace('"#/', '"urn:openapi#/'))
    return Draft202012Validator(absolute, registry=_REGISTRY, format_checker=FormatChecker())


def _no_json(text):
    raise AssertionError(f"{text} is not JSON")
