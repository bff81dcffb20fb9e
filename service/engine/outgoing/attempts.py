"""One attempt to deliver a message, and what comes of it."""

import time
from email.utils import parsedate_to_datetime
from http import HTTPStatus

from service.contract.errors import UrlRefused
from service.engine.outgoing import signing
from service.engine.outgoing.client import Client, OutgoingAnswer
from service.engine.outgoing.deliveries import Outcome, Taken

SECONDS = 15.0  # of an attempt as a whole


def attempt(client: Client, taken: Taken, seconds: float = SECONDS) -> Outcome:
    """Of an answer only the status is told, since what stands in it may be anything."""
    body = taken.body.encode()
    headers = {"Content-Type": "application/json"}
    headers |= signing.headers(taken.id, time.time(), body, taken.secrets) if taken.secrets else {}
    try:
        answer = client.post(taken.url, headers, body, seconds)
    except UrlRefused as error:
        return Outcome(error.detail)
    return _of(answer)


def _of(answer: OutgoingAnswer) -> Outcome:
    if HTTPStatus(200) <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
        return Outcome()
    detail = f"expected the status 2xx, found {answer.status}"
    if 300 <= answer.status < 400:
        detail += ": redirects are not followed"
    is_gone = answer.status == HTTPStatus.GONE
    return Outcome(detail, gone=is_gone, pause=_pause(answer.headers.get("retry-after", "")))


def _pause(text: str) -> float:
    """Seconds of a Retry-After, which may be a date; 0 where it is neither."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except (ValueError, OverflowError):
        return 0.0
