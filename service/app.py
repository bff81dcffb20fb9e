"""The composition root: `create_app(parts)` joins routes, errors and what they stand on."""

import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI, Request, Response

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
    app.middleware("http")(_name_request)
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


async def _name_request(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    request.state.request_id = uuid.uuid4().hex
    response = await call_next(request)
    response.headers["X-Request-ID"] = request.state.request_id
    return response
