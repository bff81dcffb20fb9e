"""T10: how many runs may be unfinished, of all and of one address; what is refused, what not."""

import asyncio
import socket
from contextlib import contextmanager
from types import SimpleNamespace

import httpx
import pytest
import sqlalchemy as sa

from helpers.fleet import CERTIFICATES, bundle, until_ended
from helpers.service_here import service_here
from service.engine.tables import runs
from service.http.app import create_app
from service.http.dependencies import find_address
from service.http.middleware import authentication

REQUEST = {"dataset": "three/test", "postgen": ["bleu"], "tokenizer": "none"}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with service_here(tmp_path_factory.mktemp("few"), most_runs=6) as service:
        with service.client() as client:
            client.put("/v1/datasets/three", content=bundle(3))
        yield service


@contextmanager
def _from(service, address):
    transport = httpx.HTTPTransport(local_address=address, verify=CERTIFICATES)
    with httpx.Client(base_url=service.url, timeout=20, transport=transport) as client:
        yield client


def _submit(client, words):
    captions = [{"image": f"{place}.jpg", "caption": words} for place in range(3)]
    return client.post("/v1/evaluations", json={**REQUEST, "captions": captions})


@pytest.mark.long
def test_one_address_has_half_of_what_others_leave_and_everything_accepted_is_done(service):
    with _from(service, "127.0.0.1") as one, _from(service, "127.0.0.2") as other:
        with service.held():
            mine = [_submit(one, f"w{number}") for number in range(4)]
            assert [answer.status_code for answer in mine] == [202, 202, 202, 503]
            refused = mine.pop()
            assert refused.json()["code"] == "queue_full"
            assert refused.json()["detail"].startswith(
                "You have 3 unfinished runs; your limit is 3. Wait until one ends, or cancel one. "
                "Within the last minute "
            )
            assert 1 <= int(refused.headers["Retry-After"]) <= 20
            theirs = [_submit(other, f"v{number}") for number in range(2)]
            assert [answer.status_code for answer in theirs] == [202, 503]
            places = [answer.headers["Location"] for answer in (*mine, theirs[0])]
            assert {one.get(place).status_code for place in places} == {200}
            assert {one.post(f"{place}/cancel").status_code for place in places[:2]} == {202}
            assert _submit(one, "w9").status_code == 202
        for place in places[2:]:
            assert until_ended(one, place.rpartition("/")[2], 20)["status"] == "succeeded"
        assert _submit(one, "w10").status_code == 202


def test_all_addresses_together_have_so_many(service):
    with service.held():
        codes = []
        for number in range(2, 9):
            with _from(service, f"127.0.0.{number}") as client:
                answer = _submit(client, f"u{number}")
                codes.append(answer.status_code)
        assert codes == [202] * 6 + [503]
        assert answer.json()["detail"].startswith(
            "The service has 6 unfinished runs; its limit is 6. Wait until one ends. "
        )


def test_it_is_refused_before_its_body_is_there(service):
    head = (
        "POST /v1/evaluations HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        "Content-Length: 1000000\r\n\r\n"
    )
    with _from(service, "127.0.0.1") as client, service.held():
        assert [_submit(client, f"t{number}").status_code for number in range(3)] == [202] * 3
        with socket.create_connection(("127.0.0.1", service.port), timeout=5) as connection:
            connection.sendall(head.encode())
            assert connection.recv(100).startswith(b"HTTP/1.1 503")


@pytest.mark.parametrize(
    ("sender", "caller"), [("10.0.0.1", "203.0.113.9"), ("10.0.0.2", "10.0.0.2")]
)
def test_only_a_proxy_that_is_named_says_for_whom_it_asks(service, monkeypatch, sender, caller):
    monkeypatch.setattr(
        authentication, "_is_of_this_machine", lambda _: True
    )  # who asks needs no key
    app = create_app(service._running, proxies="10.0.0.1, 10.0.1.0/24")
    transport = httpx.ASGITransport(app, client=(sender, 5000))
    captions = [{"image": f"{place}.jpg", "caption": sender} for place in range(3)]
    request = {"json": {**REQUEST, "captions": captions}}
    request["headers"] = {"X-Forwarded-For": "203.0.113.9"}

    async def ask():
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.post("/v1/evaluations", **request)

    answer = asyncio.run(ask())
    with service.records.reading() as connection:
        query = sa.select(runs.c.caller).where(runs.c.id == answer.json()["id"])
        assert connection.execute(query).scalar_one() == caller


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("testclient", "local"),
        (None, "local"),
    ],
)
def test_addresses_that_one_caller_has_are_one(host, expected):
    client = None if host is None else SimpleNamespace(host=host)
    assert find_address(SimpleNamespace(client=client)) == expected
