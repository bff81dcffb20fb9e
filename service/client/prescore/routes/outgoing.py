"""Requests for webhooks."""

import json
from collections.abc import Sequence
from typing import Any

from prescore.http import answers, paging, retries
from prescore.http.addresses import Address
from prescore.http.steps import Request, Send, Steps, segment
from prescore.models import Dataset, Webhook, WebhookSecret
from prescore.names import check_dataset
from prescore.routes import asking

PLACE = "/v1/webhooks"
_FETCH_SECONDS = 1500  # 10 minutes to fetch, 10 to judge, and time to store


def place(id_: str) -> str:
    return f"{PLACE}/{segment(id_)}"


def listed(address: Address) -> Steps[None]:
    return paging.pages(address, Webhook, PLACE)


def made(
    address: Address, url: str, events: Sequence[str] | None, format_: str | None
) -> Steps[WebhookSecret]:
    given = {"url": url, "events": asking.names("events", events), "format": format_}
    fields = {name: value for name, value in given.items() if value is not None}
    body = json.dumps(fields).encode()
    return (yield from _once(address, Request("POST", PLACE, headers=asking.JSON, body=body)))


def rotated(address: Address, id_: str) -> Steps[WebhookSecret]:
    return (yield from _once(address, Request("POST", f"{place(id_)}/rotate")))


def fetched(address: Address, name: str, url: str, digest: str) -> Steps[Dataset]:
    """Held open while the service fetches; a repetition finds what an earlier one has stored."""
    check_dataset(name)
    body = json.dumps({"url": url, "digest": digest}).encode()
    place = f"/v1/datasets/{segment(name)}/fetch"
    request = Request("POST", place, headers=asking.JSON, body=body, hold=_FETCH_SECONDS)
    response = yield from retries.sent(address, request)
    return answers.parsed(address.url, Dataset, response)


def tested(address: Address, id_: str) -> Steps[Webhook]:
    response = yield from retries.sent(address, Request("POST", f"{place(id_)}/test"))
    return answers.parsed(address.url, Webhook, response)


def _once(address: Address, request: Request) -> Steps[WebhookSecret]:
    """Never repeated: where the answer is lost, a repetition would make a second webhook, or a
    secret that replaces one which nobody has heard.
    """
    response: Any = yield Send(request)
    return answers.parsed(address.url, WebhookSecret, response)
