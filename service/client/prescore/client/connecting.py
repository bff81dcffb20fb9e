"""How a client reaches its service, where nothing else is said."""

import os
from contextlib import closing

from prescore.http import job_tokens
from prescore.http.addresses import Address
from prescore.http.transport import Transport
from prescore.models.keys import JobKey
from prescore.routes import job_keys

DEFAULT_URL = "http://127.0.0.1:8000"
PATIENCE_SECONDS = 30.0  # a service that restarts answers again within this


def address(url: str | None, key: str | None, patience: float) -> Address:
    url = os.environ.get("PRESCORE_URL") or DEFAULT_URL if url is None else url
    key = os.environ.get("PRESCORE_KEY") if key is None else key
    return Address.of(url, key, patience)


def job_key(url: str | None, patience: float) -> JobKey | None:
    """A key for the CI job that this is, in exchange for its token; None where this is no such job,
    where PRESCORE_KEY is set, or where the service wants no key.
    """
    if os.environ.get("PRESCORE_KEY") or not job_tokens.is_there(os.environ):
        return None
    asked = address(url, "", patience)
    with closing(Transport(asked)) as transport:
        if not transport.run(job_keys.wanted(asked)):
            return None
        return transport.run(
            job_keys.exchanged(asked, lambda: job_tokens.take(os.environ, asked.url))
        )
