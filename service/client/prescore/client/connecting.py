"""How a client reaches its service, where nothing else is said."""

import os

from prescore.http.addresses import Address

DEFAULT_URL = "http://127.0.0.1:8000"
PATIENCE_SECONDS = 30.0  # a service that restarts answers again within this


def address(url: str | None, key: str | None, patience: float) -> Address:
    url = os.environ.get("PRESCORE_URL") or DEFAULT_URL if url is None else url
    key = os.environ.get("PRESCORE_KEY") if key is None else key
    return Address.of(url, key, patience)
