"""T59: names that may be anybody's, pages of other sites, forms and plain text are refused."""

import json
import re
import socket
from http.client import HTTPResponse
from urllib.parse import urlsplit

import httpx
import pytest
from fastapi.responses import PlainTextResponse
from fastapi.testclient import TestClient

from service.http.middleware.origins import OriginCheck

OURS = [
    "127.0.0.1:8000",
    "[::1]:8000",
    "localhost",
    "LOCALHOST.",
    "api:8000",
    "192.0.2.7",
    "a.localhost",
]
FOREIGN = ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "127.0.0.1@evil.example"]


def _get(service, path, *hosts):
    """The answer to a request with these names of the host."""
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        named = "".join(f"Host: {host}\r\n" for host in hosts)
        connection.sendall(f"GET {path} HTTP/1.1\r\n{named}Connection: close\r\n\r\n".encode())
        response = HTTPResponse(connection)
        response.begin()
        return response.status, response.headers, response.read()


@pytest.mark.parametrize("host", OURS)
def test_addresses_and_names_without_a_dot_are_ours(service, host):
    assert _get(service, "/v1/evaluations", host)[0] == 200


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("path", ["/v1/evaluations", "/livez", "/docs", "/nothing"])
def test_a_name_that_may_be_anybodys_is_refused(service, host, path):
    status, headers, body = _get(service, path, host)
    problem = json.loads(body)
    assert (status, problem["code"]) == (421, "unknown_host")
    assert "PRESCORE_HOSTS" in problem["detail"]
    assert headers["X-Request-ID"] == problem["request_id"]


@pytest.mark.parametrize("host", ["[", "]", "[x]", "a[b", "[::1"])
def test_a_host_that_is_none_is_refused_without_an_error(service, host):
    status, _, body = _get(service, "/livez", host)
    assert (status, json.loads(body)["code"]) == (400, "refused")
    assert "Traceback" not in service.log.read_text()


def test_a_second_host_is_judged_too(service):
    assert _get(service, "/livez", "localhost", "evil.example")[0] == 421


async def _nothing(scope, receive, send):
    await PlainTextResponse("ours")(scope, receive, send)


def test_the_operator_names_the_service():
    app = OriginCheck(_nothing, hosts=["Prescore.Example"])
    assert TestClient(app, "http://prescore.example:8000").get("/").status_code == 200
    assert TestClient(app, "http://a.prescore.example").get("/").status_code == 421


CHANGES = [
    ("POST", "/v1/evaluations"),
    ("POST", "/v1/evaluations/ev_0/cancel"),
    ("PUT", "/v1/datasets/tiny"),
]
OTHERS = [
    {"Origin": "http://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://["},
    {"Origin": "http://localhost:9"},
    {"Origin": "http://localhost", "Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize(("method", "path"), CHANGES)
@pytest.mark.parametrize("headers", OTHERS)
def test_a_page_of_another_site_changes_nothing(client, method, path, headers):
    answer = client.request(method, path, headers={"Host": "localhost:8000", **headers})
    assert answer.status_code == 403
    assert answer.json()["code"] == "foreign_origin"


@pytest.mark.parametrize("origin", ["http://localhost:8000", "https://localhost:8000"])
@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_our_own_pages_may(client, method, path, origin):
    headers = {"Host": "localhost:8000", "Origin": origin, "Sec-Fetch-Site": "same-origin"}
    assert client.request(method, path, headers=headers).status_code in (404, 415, 422)


@pytest.mark.parametrize(
    "kind",
    ["application/x-www-form-urlencoded", "multipart/form-data; boundary=a", "text/plain"],
)
def test_forms_and_plain_text_cancel_nothing(client, kind):
    """A browser sends them to any site, and an old one does not say from where."""
    answer = client.post("/v1/evaluations/ev_0/cancel", headers={"Content-Type": kind})
    assert answer.status_code == 415


@pytest.mark.long
@pytest.mark.parametrize("path", ["/livez", "/docs", "/v1/evaluations", "/nothing", "/metrics"])
def test_nothing_in_an_answer_acts(service, path):
    headers = httpx.get(service.url + path).headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert len(headers.get_list("Content-Security-Policy")) == 1


def test_the_page_of_the_interface_has_no_script_and_needs_our_own_files_alone(service):
    answer = httpx.get(f"{service.url}/docs")
    assert "script-src" not in answer.headers["Content-Security-Policy"]
    assert "unsafe" not in answer.headers["Content-Security-Policy"]
    page = answer.text
    assert not re.search(r"<script|<img|src=|@import|url\(|style=", page)
    files = re.findall(r'<link [^>]*href="([^"]*)"', page)
    assert [httpx.get(service.url + file).status_code for file in files] == [200, 200]
    assert {urlsplit(link).netloc for link in re.findall(r'href="([^"]*)"', page)} == {""}
    for path in httpx.get(f"{service.url}/openapi.json").json()["paths"]:
        assert path in page
