"""The composition root: `create_app(parts)` joins routes, errors and what they stand on."""

import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service import problems
from service.contract import database, queueing
from service.contract.blobs import FileBlobs
from service.contract.queueing import Queues
from service.contract.records import Records
from service.contract.settings import Settings, load
from service.dependencies import Parts
from service.routers import checkpoints, datasets, evaluations, health, metrics
from service.watching import Watcher

_SUMMARY = "The evaluator that a captioning team shares."


def create_app(parts: Parts) -> FastAPI:
    app = FastAPI(
        title="Prescore",
        version=version("prescore"),
        summary=_SUMMARY,
        lifespan=_lifespan,
    )
    app.state.parts = parts
    problems.install(app)
    app.add_middleware(_NamedRequests)
    return _routes(app)


def _routes(app: FastAPI) -> FastAPI:
    for module in (checkpoints, datasets, evaluations, metrics, health):
        app.include_router(module.router)
    return app


def from_environment() -> FastAPI:
    """What uvicorn calls: `service.app:from_environment`, as a factory."""
    return create_app(connect(load()))


def describe() -> dict[str, Any]:
    """The OpenAPI document, without anything behind it."""
    return _routes(
        FastAPI(title="Prescore", version=version("prescore"), summary=_SUMMARY)
    ).openapi()


def connect(settings: Settings) -> Parts:
    engine = database.connect(settings.database)
    database.check_at_head(engine)
    connection = queueing.connect(settings.redis)
    queueing.check(connection)
    records = Records(engine)
    return Parts(records, Queues(connection), FileBlobs(settings.blobs), Watcher(records))


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with app.state.parts.watcher.running():
        yield


class _NamedRequests:
    """Every request has an id, which its answer and every line of the log about it carry."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        name = uuid.uuid4().hex
        scope.setdefault("state", {})["request_id"] = name

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", name.encode())]
            await send(message)

        await self._app(scope, receive, named)
