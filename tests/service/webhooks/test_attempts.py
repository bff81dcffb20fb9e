"""What comes of an attempt, by what a real receiver answers."""

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from certificates import Authority
from service.outbound.client import OutboundClient
from service.outbound.destinations import AllowedHosts
from service.webhooks.deliveries import DeliveryOutcome, DueMessage, attempt_delivery
from tls_servers import PORT, read_request, serving

URL = f"https://hooks.example:{PORT}/hook"
TAKEN = DueMessage("msg_1", "wh_1", "run.failed", '{"a": 1}', URL, ("whsec_c2VjcmV0",))


@pytest.fixture(scope="module")
def trusted(tmp_path_factory):
    authority = Authority(tmp_path_factory.mktemp("authority"))
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
    return "\r\n".join(lines).encode()


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_is_delivered(trusted, status):
    assert _attempt(trusted, _says(status))[0] == DeliveryOutcome()


def test_the_message_is_signed_json(trusted):
    _, ((head, body),) = _attempt(trusted, _says(200))
    lines = head.decode().lower().split("\r\n")
    assert "content-type: application/json" in lines
    assert "webhook-id: msg_1" in lines
    assert [line for line in lines if line.startswith("webhook-signature: v1,")]
    assert body == b'{"a": 1}'


def test_a_format_without_signatures_has_no_headers_of_them(trusted):
    unsigned = DueMessage("msg_1", "wh_1", "run.failed", "{}", URL, ())
    _, ((head, _),) = _attempt(trusted, _says(200), unsigned)
    assert b"webhook-" not in head.lower()


@pytest.mark.parametrize("status", [301, 400, 404, 429, 500, 502, 503])
def test_anything_else_is_told_by_its_status_alone(trusted, status):
    outcome, _ = _attempt(trusted, _says(status, "X-Secret: inside"))
    assert f"found {status}" in outcome.error
    assert "inside" not in outcome.error
    assert not outcome.gone


def test_gone_is_told(trusted):
    assert _attempt(trusted, _says(410))[0].gone


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
    answer = f"HTTP/1.1 503 X\r\nRetry-After: {text}\r\nContent-Length: 0\r\n\r\n"
    outcome, _ = _attempt(trusted, answer.encode("latin-1"))
    assert low <= outcome.pause <= high


def test_a_url_that_leads_inside_is_an_error_as_others_are():
    inside = OutboundClient(resolve=lambda host, port: ["169.254.169.254"])
    taken = DueMessage("msg_1", "wh_1", "run.failed", "{}", "https://hooks.example/", ())
    assert "not public" in attempt_delivery(inside, taken).error


def test_where_the_operator_has_turned_it_off_nothing_is_asked():
    assert "PRESCORE_OUTGOING=off" in attempt_delivery(OutboundClient(off=True), TAKEN).error
