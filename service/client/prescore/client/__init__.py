"""The clients of the service: a method for each request."""

from prescore.client.async_client import AsyncClient
from prescore.client.client import DEFAULT_URL, PATIENCE_SECONDS, Client, exchange_job_key

__all__ = ["DEFAULT_URL", "PATIENCE_SECONDS", "AsyncClient", "Client", "exchange_job_key"]
