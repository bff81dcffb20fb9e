"""Requests that change and delete what the service keeps, and for the list of who did."""

import json
from collections.abc import Mapping

from prescore.errors import InvalidArgument
from prescore.http import answers, paging, retries
from prescore.http.addresses import Address
from prescore.http.steps import Request, Steps
from prescore.models import Change, Evaluation
from prescore.routes import asking, evaluations


def changed(
    address: Address, id_: str, labels: Mapping[str, str | None] | None, note: str | None
) -> Steps[Evaluation]:
    """The evaluation with these labels and note; an empty note removes it."""
    wanted: dict[str, object] = {} if labels is None else {"labels": dict(labels)}
    if note is not None:
        wanted["note"] = note or None
    if not wanted:
        raise InvalidArgument("expected labels or a note, found neither")
    body = json.dumps(wanted).encode()
    request = Request("PATCH", evaluations.place(id_), headers=asking.JSON, body=body)
    response = yield from retries.sent(address, request)
    return answers.parsed(address.url, Evaluation, response)


def deleted(address: Address, place: str) -> Steps[None]:
    yield from retries.sent(address, Request("DELETE", place))


def audit(
    address: Address, action: str | None, of: str | None, page_size: int | None
) -> Steps[None]:
    params = asking.given(action=action, object=of, limit=page_size)
    return paging.pages(address, Change, "/v1/audit", params)
