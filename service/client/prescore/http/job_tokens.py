"""The token of the CI job in which this program runs, which a service exchanges for a key.

GitHub gives a job a URL and a password for one (`permissions: id-token: write`), GitLab the token
itself (`id_tokens`). Neither is ever shown, logged, or sent over a line that others can read.
"""

import json
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus

import httpx

from prescore.errors import InvalidArgument, Refused, ServiceError
from prescore.http import addresses
from prescore.http.transport import HttpRequest, Transport
from prescore.models import Problem
from prescore.models.keys import JobKey

GIVEN = "PRESCORE_ID_TOKEN"
AUDIENCE = "PRESCORE_AUDIENCE"  # for whom the token is to be; else for the service's URL
_URL, _PASSWORD = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
_JWT = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_LONGEST = 16 << 10  # characters of a token
_MOST_BYTES = 64 << 10  # of GitHub's answer
_SECONDS = 10.0
_FROM_GITHUB = "a token for this job from GitHub"


def has_token(environment: Mapping[str, str]) -> bool:
    """Check that this is a CI job that can have a token."""
    return bool(environment.get(GIVEN) or (environment.get(_URL) and environment.get(_PASSWORD)))


def is_on_demand(environment: Mapping[str, str]) -> bool:
    """Check that this job gets another token each time that it asks for one."""
    return has_token(environment) and not environment.get(GIVEN)


def wants_key(transport: Transport) -> bool:
    """Ask the service for its need of a key: to one that is open, no token is sent."""
    try:
        transport.send(HttpRequest("GET", "/v1/me"))
    except Refused as error:
        return error.status == HTTPStatus.UNAUTHORIZED
    return False


def exchange_token(transport: Transport, take_token: Callable[[], str]) -> JobKey:
    """A key for the job's token, which is taken again for each attempt: it is exchanged once."""
    if not addresses.is_private(transport.url):
        raise InvalidArgument(
            "expected an https:// URL, or one of this machine, for the token of a CI job; found "
            f"{transport.url}: everybody on the way could read it"
        )

    def attempt() -> JobKey:
        body = json.dumps({"token": take_token()}).encode()
        headers = {"Content-Type": "application/json"}
        request = HttpRequest("POST", "/v1/keys/oidc", headers=headers, body=body)
        return transport.send_once(request).parsed(JobKey)

    return transport.repeat(attempt)


def take_token(environment: Mapping[str, str], service: str) -> str:
    """A token for the service at this URL; a new one at each call, where the CI system gives it on
    demand.
    """
    given = environment.get(GIVEN, "").strip()
    token = given or _fetch_github_token(environment, environment.get(AUDIENCE) or service)
    if len(token) > _LONGEST or not _JWT.fullmatch(token):
        where = GIVEN if given else "GitHub's answer"
        raise InvalidArgument(f"expected a CI job's token (a JWT) in {where}, found another text")
    return token


def _fetch_github_token(environment: Mapping[str, str], audience: str) -> str:
    try:
        url = httpx.URL(environment[_URL]).copy_merge_params({"audience": audience})
    except (httpx.InvalidURL, ValueError):
        raise InvalidArgument(f"expected a URL in {_URL}") from None
    if not addresses.is_private(str(url)):
        raise InvalidArgument(f"expected an https:// URL in {_URL}, since a password goes there")
    headers = {"Authorization": f"Bearer {addresses.check_key(environment[_PASSWORD])}"}
    try:
        token = json.loads(_fetch_answer(url, headers))["value"]
    except (ValueError, LookupError, TypeError):
        raise _build_error("another answer than a token") from None
    return token if isinstance(token, str) else ""


def _fetch_answer(url: httpx.URL, headers: Mapping[str, str]) -> bytes:
    body = b""
    try:
        with (
            httpx.Client(timeout=_SECONDS, **addresses.build_client_options(str(url))) as client,
            client.stream("GET", url, headers=headers) as answer,
        ):
            if not answer.is_success:
                raise _build_error(f"the status {answer.status_code}", answer.status_code)
            for part in answer.iter_bytes():
                body += part
                if len(body) > _MOST_BYTES:
                    raise _build_error("an answer that is too long")
    except (httpx.HTTPError, httpx.InvalidURL) as error:  # whose text may have the URL
        raise _build_error(type(error).__name__, 503) from None
    return body


def _build_error(found: str, status: int = 0) -> ServiceError:
    detail = f"expected {_FROM_GITHUB}, found {found}"
    return ServiceError(Problem(title="no token", status=status, detail=detail))
