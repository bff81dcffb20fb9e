"""What comes of an attempt, by what a real receiver answers."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from helpers.tls_servers import PORT, read_request, serving
from service.outbound.client import OutboundClient
from service.outbound.destinations import AllowedHosts
from service.webhooks.deliveries import DeliveryOutcome, DueMessage, attempt_delivery

URL = f"https://hooks.example:{PORT}/hook"
TAKEN = DueMessage("msg_1", "wh_1", "run.failed", '{"a": 1}', URL, ("whsec_c2VjcmV0",))


@pytest.fixture(scope="module")
def trusted(authority):
    return authority.issue("hooks.example").server(), authority.client()


def _attempt(trusted, answer, taken=TAKEN):
    heads = []

    def talk(near):
        heads.append(read_request(near))
        near.sendall(answer)

    server_context, client_context = trusted
    with serving(talk, server_context) as server:
        named = AllowedHosts.read(f"hooks.example:{PORT}")
        client = OutboundClient(named, lambda host, port: [server.address], client_context)
        return attempt_delivery(client, taken, 5), heads


def _says(status, *headers):
    lines = [f"HTTP/1.1 {status} Whatever", *headers, "Content-Length: 0", "", ""]
    return "\r\n".join(lines).encode("latin-1")


def test_the_message_is_signed_json(trusted):
    _, ((head, body),) = _attempt(trusted, _says(200))
    lines = head.decode().lower().split("\r\n")
    assert "content-type: application/json" in lines
    assert "webhook-id: msg_1" in lines
    assert [line for line in lines if line.startswith("webhook-signature: v1,")]
    assert body == b'{"a": 1}'


def test_a_format_without_signatures_has_no_headers_of_them(trusted):
    _, ((head, _),) = _attempt(trusted, _says(200), replace(TAKEN, secrets=()))
    assert b"webhook-" not in head.lower()


@pytest.mark.parametrize("status", [200, 204, 299, 301, 404, 410, 429, 500, 503])
def test_2xx_is_delivered_and_anything_else_is_told_by_its_status_alone(trusted, status):
    outcome, _ = _attempt(trusted, _says(status, "X-Secret: inside"))
    if status < 300:
        assert outcome == DeliveryOutcome()
        return
    assert f"found {status}" in outcome.error
    assert "inside" not in outcome.error
    assert outcome.gone == (status == 410)


def _later():
    return format_datetime(datetime.now(UTC) + timedelta(seconds=500), usegmt=True)


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [
        ("120", 120, 120),
        (_later, 400, 500),
        ("-5", 0, 0),
        ("soon", 0, 0),
        ("9" * 400, 0, 0),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 0),
        ("²", 0, 0),
    ],
    ids=["seconds", "date", "negative", "word", "long", "past", "other-digit"],
)
def test_retry_after_is_read_as_seconds_or_a_date(trusted, header, low, high):
    text = header() if callable(header) else header
    outcome, _ = _attempt(trusted, _says(503, f"Retry-After: {text}"))
    assert low <= outcome.pause <= high


@pytest.mark.parametrize(
    ("client", "told"),
    [
        (OutboundClient(resolve=lambda host, port: ["169.254.169.254"]), "not public"),
        (OutboundClient(off=True), "PRESCORE_OUTGOING=off"),
    ],
)
def test_a_url_that_may_not_be_asked_is_an_error_as_others_are(client, told):
    taken = replace(TAKEN, url="https://hooks.example/")
    assert re.search(told, attempt_delivery(client, taken).error)
