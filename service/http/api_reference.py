"""The HTTP interface's description, as /openapi.json and as a page for people, /docs.

The page for people has no script: it is made of the description, in the frame and the colours of
the page for browsers.
"""

import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import sha256
from html import escape
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from service.http.web_page import WebPage

_STYLE = """
main { padding-bottom: 2rem }
main > * { max-width: 60rem }
code { background: var(--field) }
summary { cursor: pointer; padding: .2rem 0; overflow-wrap: anywhere }
td { overflow-wrap: anywhere }
td:first-child { overflow-wrap: break-word }
td p { margin: 0 0 .3rem }
"""
_DIGEST = b64encode(sha256(_STYLE.encode()).digest()).decode()
_POLICY = (
    f"default-src 'none'; style-src 'self' 'sha256-{_DIGEST}'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
_PLACES = {"/": "Home", "/ui/now": "Jobs"}  # those of the page's frame, beside this one
_REFUSALS = "refusals"
_PROBLEM = {"$ref": "#/components/schemas/Problem"}
_BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "pattern")


class ApiReference:
    """The routes of both, which are made when they are first asked for, and kept."""

    def __init__(self, app: FastAPI, page: WebPage) -> None:
        self._app = app
        self._page_files = page
        app.add_route("/openapi.json", self._document, include_in_schema=False)
        app.add_route("/docs", self._page, include_in_schema=False)

    def _document(self, _: Request) -> Response:
        return Response(self._json, media_type="application/json")

    def _page(self, _: Request) -> Response:
        return HTMLResponse(self._html, headers={"Content-Security-Policy": _POLICY})

    @cached_property
    def _json(self) -> bytes:
        return json.dumps(self._app.openapi(), ensure_ascii=False).encode()

    @cached_property
    def _html(self) -> bytes:
        return "".join(render_page(self._app.openapi(), self._page_files.place)).encode()


def render_page(document: Mapping[str, Any], files: str) -> Iterator[str]:
    """The page in pieces; `files`: the address of the files of the page for browsers."""
    info = document["info"]
    title = escape(f"{info['title']} {info['version']}")
    yield from _frame(f"API · {title}", files)
    yield f"<h1>API</h1><p>{title}</p>{_text(info['description'])}"
    yield '<p>For programs: <a href="/openapi.json">openapi.json</a>.</p>'
    usual = _usual_refusals(document)
    yield from _refusals(usual)
    for tag in document["tags"]:
        yield f"<h2>{escape(tag['name'].capitalize())}</h2>{_text(tag['description'])}"
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    yield from _operation(method, path, operation, usual)
    yield "<h2>Objects</h2>"
    for name, schema in document["components"]["schemas"].items():
        yield from _object(name, schema)
    yield "</main></body></html>"


def _frame(title: str, files: str) -> Iterator[str]:
    """All before the content: the head, and the same header as `service/web/parts/frame.js` has."""
    links = "".join(f'<a href="{url}">{name}</a>' for url, name in _PLACES.items())
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f'<meta name="color-scheme" content="light dark"><title>{title}</title>'
    yield f'<link rel="icon" href="{files}/icon.svg" type="image/svg+xml">'
    yield f'<link rel="stylesheet" href="{files}/styles/page.css"><style>{_STYLE}</style></head>'
    yield '<body><a class="skip" href="#content">Skip to the content</a><header class="frame">'
    yield f'<a class="brand" href="/">Prescore</a><nav class="nav" aria-label="Places">{links}'
    yield '<a href="/docs" aria-current="page">API</a></nav></header><main id="content">'


def _usual_refusals(document: Mapping[str, Any]) -> Mapping[str, str]:
    """The refusals, by status, with which many operations answer in the same words."""
    operations = [one for methods in document["paths"].values() for one in methods.values()]
    found = [
        (status, answer["description"])
        for operation in operations
        for status, answer in operation["responses"].items()
        if status >= "4"
    ]
    many = [(one, count) for one, count in Counter(found).items() if count > len(operations) / 4]
    return dict(sorted(one for one, _ in many))


def _refusals(usual: Mapping[str, str]) -> Iterator[str]:
    yield f'<h2 id="{_REFUSALS}">Refusals</h2>'
    yield f"<p>Many requests may be answered with these; each is a {_kind(_PROBLEM)}.</p>"
    yield _table((status, "", _text(said)) for status, said in usual.items())


def _operation(
    method: str, path: str, operation: Mapping[str, Any], usual: Mapping[str, str]
) -> Iterator[str]:
    title = f"<code>{method.upper()} {escape(path)}</code> {escape(operation['summary'])}"
    yield f"<details><summary>{title}</summary>{_text(operation.get('description', ''))}"
    yield _table(
        (f"{escape(each['name'])} ({each['in']})", _kind(each["schema"]), _notes(each))
        for each in operation.get("parameters", ())
    )
    for media_type, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"<p>Body: {escape(media_type)}, {_kind(content.get('schema', {}))}</p>"
    answers = operation["responses"]
    own = {at: one for at, one in answers.items() if usual.get(at) != one["description"]}
    yield "<p>Answers:</p>"
    yield _table(
        (status, _contents(answer.get("content", {})), _text(answer["description"]))
        for status, answer in own.items()
    )
    others = ", ".join(sorted(answers.keys() - own.keys()))
    yield f'<p>Usual <a href="#{_REFUSALS}">refusals</a>: {others}.</p></details>'


def _object(name: str, schema: Mapping[str, Any]) -> Iterator[str]:
    yield f'<details id="{escape(name)}"><summary><code>{escape(name)}</code></summary>'
    yield _text(schema.get("description", ""))
    required = schema.get("required", ())
    yield _table(
        (escape(key), _kind(each), _notes({**each, "required": key in required}))
        for key, each in schema.get("properties", {}).items()
    )
    yield "</details>"


def _contents(contents: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{escape(media_type)} {_kind(content.get('schema', {}))}"
        for media_type, content in contents.items()
    )


def _kind(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        name = escape(schema["$ref"].rpartition("/")[2])
        return f'<a href="#{name}">{name}</a>'
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(map(_kind, schema[several]))
    if "enum" in schema or "const" in schema:
        names = schema.get("enum", [schema.get("const")])
        return " or ".join(f"<code>{escape(json.dumps(name))}</code>" for name in names)
    if schema.get("type") == "array":
        return f"array of {_kind(schema.get('items', {}))}{_bounds(schema)}"
    return f"{escape(str(schema.get('type', 'any')))}{_bounds(schema)}"


def _bounds(schema: Mapping[str, Any]) -> str:
    found = [
        f"{name} <code>{escape(str(schema[name]))}</code>" for name in _BOUNDS if name in schema
    ]
    return f" ({', '.join(found)})" if found else ""


def _notes(field: Mapping[str, Any]) -> str:
    needed = "<p>Required.</p>" if field.get("required") is True else ""
    default = field.get("default", field.get("schema", {}).get("default"))
    usual = f"<p>Default: <code>{escape(json.dumps(default))}</code></p>" if default else ""
    return f"{needed}{_text(field.get('description', ''))}{usual}"


def _text(text: str) -> str:
    """Paragraphs, with what stands between backquotes as code."""
    marked = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text.strip()))
    return "".join(f"<p>{each}</p>" for each in marked.split("\n\n") if each)


def _table(rows: Iterable[Iterable[str]]) -> str:
    cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"
