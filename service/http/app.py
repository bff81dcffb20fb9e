"""The application: `create_app` joins routes, middleware and error handlers, `from_environment`
starts it, `describe_api` gives its OpenAPI document.
"""

import gc
import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import Depends, FastAPI
from starlette.datastructures import MutableHeaders
from starlette.middleware.gzip import DEFAULT_EXCLUDED_CONTENT_TYPES, GZipMiddleware
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from service.access.oidc import trusted_issuers
from service.access.oidc.exchange import TokenExchange
from service.contract import quotas
from service.contract.settings import load_settings
from service.engine import logs
from service.engine.service_parts import connect_parts
from service.engine.tracing import tracers
from service.engine.tracing.spans import OFF, Tracer
from service.http import openapi, problems
from service.http.api_reference import ApiReference
from service.http.dependencies import AppParts
from service.http.middleware.access_log import AccessLog, RequestSpans
from service.http.middleware.authentication import Authentication
from service.http.middleware.origins import OriginCheck
from service.http.middleware.rate_limits import RateLimiter
from service.http.query_parameters import refuse_unknown_parameters
from service.http.routers import (
    audit,
    checkpoints,
    comparisons,
    dataset_fetches,
    datasets,
    evaluations,
    health,
    inspections,
    keys,
    leaderboard,
    metrics,
    name_search,
    overviews,
    signals,
    team_events,
    webhooks,
)
from service.http.routers.runs import make_run_router
from service.http.tus import routes
from service.http.tus.protocol import TusRequests
from service.http.watchers import TeamWatcher
from service.http.web_page import WebPage
from service.outbound.client import OutboundClient
from service.runs import evaluation_listener
from service.runs.kinds import KINDS
from service.stored import judges

_DESCRIPTION = """
Upload a dataset and a checkpoint once; submit evaluations, which are answered at once; poll or
listen while their scores are computed. Captions of any system are scored without a checkpoint.

A refused request is answered with a problem (RFC 9457); `/v1/limits` lists the limits. A run that
fails is not an HTTP error: its `status` and `error` say what failed. Fields and values may be
added to answers; none will be renamed or removed under `/v1`. Where the operator has named the
address of the page for people, each answer has it as `Link: <…/ui/>; rel="alternate"`.
"""


_COMPRESSED_BYTES = 1024  # bytes of an answer, from which it is compressed
_COMPRESSION_LEVEL = 4  # of zlib: a fifth larger than with 9, five times as fast
_UNCOMPRESSED_TYPES = (
    *DEFAULT_EXCLUDED_CONTENT_TYPES,
    "application/octet-stream",
    "application/x-tar",
)


def create_app(
    parts: AppParts, hosts: Collection[str] = (), proxies: str = "", tracer: Tracer = OFF
) -> FastAPI:
    """Build the application. `hosts`: names of the service; `proxies`: addresses whose
    X-Forwarded-For is believed, with commas between them; `tracer`: gets the spans of requests.
    """
    evaluation_listener.listen_to_engine()
    app = _routes()
    app.state.parts = parts
    app.state.tracer = tracer
    app.state.rates = RateLimiter(parts.queue)
    app.state.teams = TeamWatcher()
    problems.install_handlers(app)
    app.add_middleware(FinalNewline)
    app.add_middleware(
        GZipMiddleware,
        minimum_size=_COMPRESSED_BYTES,
        compresslevel=_COMPRESSION_LEVEL,
        exclude_content_types=_UNCOMPRESSED_TYPES,
    )
    app.add_middleware(TusRequests)
    app.add_middleware(
        Authentication, records=parts.records, allowed=parts.allowed, rates=app.state.rates
    )
    app.add_middleware(OriginCheck, hosts=hosts)
    if tracer.is_on:
        app.add_middleware(RequestSpans, tracer=tracer)
    app.add_middleware(AccessLog, telemetry=parts.telemetry, public_url=parts.public_url)
    if proxies:
        app.add_middleware(ProxyHeadersMiddleware, trusted_hosts=proxies)
    return app


def from_environment() -> FastAPI:
    """The application with the settings of the environment; uvicorn calls this factory."""
    settings = load_settings()
    logs.configure_logs("api", settings.log_level)
    # What is imported stays, so that no collection looks through it while requests wait; and a body
    # of many values starts a few collections, not a thousand.
    gc.freeze()
    gc.set_threshold(20_000, 20, 100)
    # A file that is wrong is told before anything is opened.
    allowed = quotas.read_quotas(settings.limits)
    jobs = TokenExchange(trusted_issuers.read_issuers(settings.oidc))
    running = AppParts.on(
        connect_parts(settings, hurried=True),
        most_runs=settings.most_runs,
        outgoing=OutboundClient.of(settings),
        allowed=allowed,
        jobs=jobs,
    )
    tracer = tracers.choose_tracer("api", os.environ)
    return create_app(running, settings.named_hosts, settings.proxies, tracer)


def describe_api() -> dict[str, Any]:
    """The OpenAPI document, made without a database or Redis."""
    return _routes().openapi()


class _DocumentedApp(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = openapi.build_document(self)
        return self.openapi_schema


def _routes() -> FastAPI:
    app = _DocumentedApp(
        title="Prescore",
        version=version("prescore"),
        summary="The evaluator that a captioning team shares.",
        description=_DESCRIPTION,
        license_info={"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        lifespan=_lifespan,
        redirect_slashes=False,
        openapi_url=None,  # with its pages, whose scripts are of other sites: `Reference` has ours
    )
    ApiReference(app, WebPage(app))
    resources = (
        evaluations.router,
        comparisons.router,
        team_events.router,
        overviews.router,
        health.queues_router,
        inspections.router,
        name_search.router,
        metrics.models_router,
        checkpoints.router,
        checkpoints.columns_router,
        datasets.references_router,  # before pictures, whose names of images may have slashes
        datasets.router,
        dataset_fetches.router,
        routes.router,
        leaderboard.router,
        signals.router,
        metrics.router,
        health.limits_router,
        keys.router,
        audit.router,
        webhooks.router,
    )
    routers = [*map(make_run_router, KINDS.values()), *resources]
    for router in routers:
        app.include_router(router, dependencies=[Depends(refuse_unknown_parameters)])
    app.include_router(health.router)  # those who ask for health may send what they like
    every = [
        *app.routes,
        *(route for router in (*routers, health.router) for route in router.routes),
    ]
    paths = {route.path for route in every if isinstance(route, Route)}
    app.state.paths = {path for path in paths if path != "/" and not path.startswith("/ui/")}
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    state = app.state
    async with state.parts.watcher.running(), state.rates.running(), state.teams.running():
        yield
    judges.get_judges().give_up()
    app.state.tracer.close()


_TYPE = "application/json"


class FinalNewline:
    """A newline at the end of every JSON answer, so that a shell's prompt does not stand behind it.
    It is outside the routes, since FastAPI, lists, kept answers and streams make JSON each in its
    own way. Problems have theirs from `problems.document`.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_json = False

        async def ended(message: Message) -> None:
            nonlocal is_json
            if message["type"] == "http.response.start":
                headers = MutableHeaders(raw=message["headers"])
                is_json = headers.get("content-type") == _TYPE
                if is_json and "content-length" in headers:
                    headers["content-length"] = str(int(headers["content-length"]) + 1)
            elif is_json and not message.get("more_body", False):
                message["body"] = message.get("body", b"") + b"\n"
            await send(message)

        await self._app(scope, receive, ended)
