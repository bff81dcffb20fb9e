"""Waiting for a run by long polls: the service answers at a change, or after HOLD_SECONDS."""

import time
from collections.abc import Callable
from typing import TypeVar

from prescore.errors import TimedOut
from prescore.http.answers import Reply, build_foreign_error, read_retry_after
from prescore.http.transport import HttpRequest, Transport
from prescore.models import Evaluation, Run

HOLD_SECONDS = 20  # below the 30 to 60 s after which proxies give up
NEWS_GAP_SECONDS = 0.1  # at least so long between polls, whatever the service does
QUICK_POLLS = 1000  # so many with that gap, then with the one below
FIRST_POLLS = 10  # which heed no Retry-After: instant scores come within a second
QUIET_GAP_SECONDS = 1.0  # after no change: for a service that answers at once
POLL_SECONDS = 60.0  # the longest pause between two polls
POLLS = 1_000_000  # of one run: a run ends after seven days at the latest

R = TypeVar("R", bound=Run)
OnChange = Callable[[Evaluation], None]


def await_end(
    transport: Transport,
    model: type[R],
    path: str,
    timeout: float | None,
    on_change: Callable[[R], None] | None = None,
) -> R:
    """The run once it has ended; raises TimedOut after `timeout` seconds."""
    until = time.monotonic() + (float("inf") if timeout is None else timeout)
    last: R | None = None
    etag = ""
    for polls in range(POLLS):
        started = time.monotonic()
        reply = _poll_run(transport, path, etag, until - started)
        etag = reply.headers.get("ETag", etag)
        run = last
        if run is None or reply.response.status_code != 304:
            run = reply.parsed(model)
        news = run != last
        if news and on_change is not None:
            on_change(run)
        if run.ended:
            return run
        last = run
        now = time.monotonic()
        if timeout is not None and now >= until:
            raise TimedOut(run, timeout)
        gap = NEWS_GAP_SECONDS if news and polls < QUICK_POLLS else QUIET_GAP_SECONDS
        retry = 0.0 if news and polls < FIRST_POLLS else read_retry_after(reply.response) or 0.0
        pause = max(gap - (now - started), min(retry, POLL_SECONDS), 0.0)
        transport.sleep(min(pause, until - now))
    what = f"expected a run that ends, found one after {POLLS} polls"
    raise build_foreign_error(transport.url, what)


def _poll_run(transport: Transport, path: str, etag: str, left: float) -> Reply:
    """The run; with an ETag the service waits for a change first."""
    headers = {"If-None-Match": etag} if etag else {}
    hold = int(max(0.0, min(HOLD_SECONDS, left))) if etag else 0
    if hold:
        headers["Prefer"] = f"wait={hold}"
    request = HttpRequest("GET", path, headers=headers, hold=hold)
    return transport.send(request, patience=max(left, 0.0))
