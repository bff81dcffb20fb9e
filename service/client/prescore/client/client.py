"""The client of the service for programs without asyncio, and how it reaches its service."""

import os
from contextlib import ExitStack, closing
from pathlib import Path
from types import TracebackType
from typing import Self

from prescore.client.analyses import AnalysisCalls
from prescore.client.evaluations import EvaluationCalls
from prescore.client.files import FileCalls
from prescore.client.local_service import HERE, run_service
from prescore.client.team import TeamCalls
from prescore.http import job_tokens
from prescore.http.addresses import Address
from prescore.http.transport import Transport
from prescore.models.keys import JobKey

DEFAULT_URL = "http://127.0.0.1:8000"
PATIENCE_SECONDS = 30.0  # a service that restarts answers again within this


class ServiceCalls(EvaluationCalls, FileCalls, AnalysisCalls, TeamCalls):
    """All calls to the service, over a transport."""


class Client(ServiceCalls):
    """Talks to a Prescore service.

        with prescore.Client() as client:
            digest = client.upload_checkpoint("epoch-08.safetensors")
            evaluation = client.submit("flickr8k/test", checkpoint=digest)
            print(client.wait(evaluation.id).scores["cider_d"].value)

    Defaults: `url` is PRESCORE_URL or http://127.0.0.1:8000, `key` is PRESCORE_KEY. While the
    service cannot be reached, or answers that it is busy, a request is repeated for at most
    `patience` seconds; no repetition does anything twice. Safe to share between threads.

    `here=True` runs the service in this process, with what it computed before in PRESCORE_HOME, or
    in the folder that `here` names. It needs the distribution `prescore` with its extras.
    """

    def __init__(
        self,
        url: str | None = None,
        key: str | None = None,
        *,
        patience: float = PATIENCE_SECONDS,
        here: bool | str | Path = False,
    ) -> None:
        self.is_here = bool(here)
        self._service = ExitStack()
        super().__init__(Transport(resolve_address(self._service, url, key, patience, here=here)))

    def __repr__(self) -> str:
        return f"Client({self.url!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()
        self._service.close()

    @property
    def url(self) -> str:
        return self._transport.url


def exchange_job_key(url: str | None, patience: float) -> JobKey | None:
    """A key for the CI job that this is, in exchange for its token; None where this is no such job,
    where PRESCORE_KEY is set, or where the service wants no key.
    """
    if os.environ.get("PRESCORE_KEY") or not job_tokens.has_token(os.environ):
        return None
    with closing(Transport(build_address(url, "", patience))) as transport:
        if not job_tokens.wants_key(transport):
            return None
        return job_tokens.exchange_token(
            transport, lambda: job_tokens.take_token(os.environ, transport.url)
        )


def resolve_address(
    service: ExitStack,
    url: str | None,
    key: str | None,
    patience: float,
    *,
    here: bool | str | Path,
) -> Address:
    """The address of a service, or of one in this process, which `service` ends."""
    if not here:
        return build_address(url, key, patience)
    socket = service.enter_context(run_service(None if here is True else Path(here)))
    return Address(HERE, patience, {}, socket)


def build_address(url: str | None, key: str | None, patience: float) -> Address:
    url = os.environ.get("PRESCORE_URL") or DEFAULT_URL if url is None else url
    key = os.environ.get("PRESCORE_KEY") if key is None else key
    return Address.of(url, key, patience)
