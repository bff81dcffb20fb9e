"""Waiting for a run by long polls: the service answers at a change, or after HOLD_SECONDS."""

import time
from collections.abc import Callable
from typing import TypeVar

import httpx

from prescore.errors import TimedOut
from prescore.http import answers, bounds, retries
from prescore.http.addresses import Address
from prescore.http.steps import Request, Sleep, Steps
from prescore.models import Evaluation, Run

HOLD_SECONDS = 20  # below the 30 to 60 s after which proxies give up
NEWS_GAP_SECONDS = 0.1  # at least so long between polls, whatever the service does
QUICK_POLLS = 1000  # so many with that gap, then with the one below
QUIET_GAP_SECONDS = 1.0  # after no change: for a service that answers at once

R = TypeVar("R", bound=Run)
OnChange = Callable[[Evaluation], None]


def ended(
    address: Address,
    model: type[R],
    path: str,
    timeout: float | None,
    on_change: Callable[[R], None] | None = None,
) -> Steps[R]:
    until = time.monotonic() + (float("inf") if timeout is None else timeout)
    last: R | None = None
    etag = ""
    for polls in range(bounds.POLLS):
        started = time.monotonic()
        response = yield from _poll(address, path, etag, until - started)
        etag = response.headers.get("ETag", etag)
        run = last
        if run is None or response.status_code != 304:
            run = answers.parsed(address.url, model, response)
        news = run != last
        if news and on_change is not None:
            on_change(run)
        if run.ended:
            return run
        last = run
        now = time.monotonic()
        if timeout is not None and now >= until:
            raise TimedOut(run, timeout)
        quickly = news and polls < QUICK_POLLS
        yield Sleep(min(_pause(response, now - started, quickly=quickly), until - now))
    what = f"expected a run that ends, found one after {bounds.POLLS} polls"
    raise answers.not_prescore(address.url, what)


def _poll(address: Address, path: str, etag: str, left: float) -> Steps[httpx.Response]:
    """The run; with an ETag the service waits for a change first."""
    headers = {"If-None-Match": etag} if etag else {}
    hold = int(max(0.0, min(HOLD_SECONDS, left))) if etag else 0
    if hold:
        headers["Prefer"] = f"wait={hold}"
    request = Request("GET", path, headers=headers, hold=hold)
    return retries.sent(address, request, patience=max(left, 0.0))


def _pause(response: httpx.Response, elapsed: float, *, quickly: bool) -> float:
    gap = NEWS_GAP_SECONDS if quickly else QUIET_GAP_SECONDS
    asked = min(answers.retry_after(response) or 0.0, bounds.POLL_SECONDS)
    return max(0.0, gap - elapsed, asked)
