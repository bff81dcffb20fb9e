"""A key for the CI job in which this program runs, in exchange for the job's own token."""

import json
from collections.abc import Callable

from prescore.errors import InvalidArgument, Refused
from prescore.http import addresses, answers, retries
from prescore.http.addresses import Address
from prescore.http.steps import Do, Request, Send, Steps
from prescore.models.keys import JobKey
from prescore.routes import asking

_UNAUTHORIZED = 401


def wanted(address: Address) -> Steps[bool]:
    """Whether the service wants a key: to one that is open, no token is sent."""
    try:
        yield from retries.sent(address, Request("GET", "/v1/me"))
    except Refused as error:
        return error.status == _UNAUTHORIZED
    return False


def exchanged(address: Address, take: Callable[[], str]) -> Steps[JobKey]:
    """`take` gives the job's token: again for each attempt, since a token is exchanged once."""
    if not addresses.is_private(address.url):
        raise InvalidArgument(
            "expected an https:// URL, or one of this machine, for the token of a CI job; found "
            f"{address.url}: everybody on the way could read it"
        )

    def attempt() -> Steps[JobKey]:
        body = json.dumps({"token": (yield Do(take))}).encode()
        request = Request("POST", "/v1/keys/oidc", headers=asking.JSON, body=body)
        response = yield Send(request)
        return answers.parsed(address.url, JobKey, response)

    return (yield from retries.persistently(address, attempt))
