"""The page of the interface, /docs, says everything, and what many routes share once."""

import re
from html import unescape

from starlette.applications import Starlette
from starlette.testclient import TestClient

from helpers import interface
from service.http import api_reference, web_page

PAGE = unescape("".join(api_reference.render_page(interface.DOCUMENT)))


def _section(method, path):
    """What the page says of an operation."""
    found = PAGE.partition(f"<summary><code>{method} {path}</code>")[2].partition("</details>")[0]
    assert found, (method, path)
    return found


def test_what_every_request_may_be_answered_is_told_once():
    usual = PAGE.partition('id="refusals"')[2].partition("</table>")[0]
    for status in ("403", "408", "421", "431", "500"):
        assert f"<td>{status}</td>" in usual
        assert PAGE.count(f"<td>{status}</td>") == 1


def test_each_operation_names_every_status_that_it_may_answer():
    for method, path, operation in interface.operations():
        told, _, usual = _section(method, path).partition('<a href="#refusals">')
        own = re.findall("<td>([0-9]{3})</td>", told)
        linked = re.findall("[0-9]{3}", usual)
        assert sorted([*own, *linked]) == sorted(operation["responses"]), path


def test_the_root_says_where_it_is():
    """The routes that are named are there, and need no record."""
    app = Starlette()
    app.openapi = lambda: interface.DOCUMENT
    app.title, app.version = "Prescore", "1"
    api_reference.ApiReference(app)
    web_page.WebPage(app)
    client = TestClient(app)
    found = client.get("/").json()
    assert (found["name"], found["ready"]) == ("Prescore", "/readyz")
    assert client.get(found["docs"]).status_code == 200
    assert client.get(found["openapi"]).json() == interface.DOCUMENT
