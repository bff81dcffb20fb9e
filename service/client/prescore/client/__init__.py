"""The clients of the service: a method for each request."""

from prescore.client.asynchronous import AsyncClient
from prescore.client.blocking import Client
from prescore.client.connecting import DEFAULT_URL, PATIENCE_SECONDS, job_key

__all__ = ["DEFAULT_URL", "PATIENCE_SECONDS", "AsyncClient", "Client", "job_key"]
