"""`create_app(parts)` builds the application: routes, error handlers, the access log."""

import gc
import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import Depends, FastAPI
from starlette.routing import Route
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
from service.http.dependencies import Running
from service.http.entrance.access_log import AccessLog
from service.http.entrance.keyring import Keyring
from service.http.entrance.origins import OwnOrigins
from service.http.entrance.rates import Rates
from service.http.entrance.traced import Traced
from service.http.final_newline import FinalNewline
from service.http.live.teams import Teams
from service.http.pages.reference import Reference
from service.http.pages.site import Site
from service.http.queries import only_known
from service.http.resumable import routes
from service.http.resumable.tus import TusRequests
from service.http.routers import (
    checkpoints,
    columns,
    correlations,
    datasets,
    details,
    health,
    leaderboard,
    learned,
    limits,
    metrics,
    pictures,
)
from service.http.routers.access import keys, me, oidc, session
from service.http.routers.browsing import images, labels, references
from service.http.routers.life import audit, deletions, runs
from service.http.routers.outgoing import datasets as datasets_by_url
from service.http.routers.outgoing import webhooks
from service.http.routers.overview import events, now
from service.http.routers.runs import router_of
from service.outbound.client import OutboundClient
from service.runs.kinds import KINDS
from service.stored import judges

_DESCRIPTION = """
Upload a dataset and a checkpoint once; submit evaluations, which are answered at once; poll or
listen while their scores are computed. Captions of any system are scored without a checkpoint.

A refused request is answered with a problem (RFC 9457); `/v1/limits` says what is too much. A run
that fails is no HTTP error: its `status` and `error` say what failed. Fields and values may be
added to answers; none will be renamed or removed under `/v1`. Where the operator has named the
address of the page for people, each answer has it as `Link: <…/ui/>; rel="alternate"`.
"""


def create_app(
    parts: Running, hosts: Collection[str] = (), proxies: str = "", tracer: Tracer = OFF
) -> FastAPI:
    """`hosts`: names that the service has; `proxies`: addresses whose X-Forwarded-For is believed,
    with commas between them; `tracer`: who is told of requests.
    """
    app = _routes()
    app.state.parts = parts
    app.state.tracer = tracer
    app.state.rates = Rates(parts.queue)
    app.state.teams = Teams()
    problems.install(app)
    app.add_middleware(FinalNewline)
    app.add_middleware(TusRequests)
    app.add_middleware(Keyring, records=parts.records, allowed=parts.allowed, rates=app.state.rates)
    app.add_middleware(OwnOrigins, hosts=hosts)
    if tracer.is_on:
        app.add_middleware(Traced, tracer=tracer)
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
    allowed, jobs = (
        quotas.read_quotas(settings.limits),
        TokenExchange(trusted_issuers.read_issuers(settings.oidc)),
    )
    parts, outgoing = connect_parts(settings, hurried=True), OutboundClient.of(settings)
    running = Running.on(parts, settings.most_runs, outgoing, allowed, jobs)
    tracer = tracers.choose_tracer("api", os.environ)
    return create_app(running, settings.named_hosts, settings.proxies, tracer)


def describe() -> dict[str, Any]:
    """The OpenAPI document, made without a database or Redis."""
    return _routes().openapi()


class _Described(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            self.openapi_schema = openapi.describe(self)
        return self.openapi_schema


def _routes() -> FastAPI:
    app = _Described(
        title="Prescore",
        version=version("prescore"),
        summary="The evaluator that a captioning team shares.",
        description=_DESCRIPTION,
        license_info={"name": "Apache License 2.0", "identifier": "Apache-2.0"},
        lifespan=_lifespan,
        redirect_slashes=False,
        openapi_url=None,  # with its pages, whose scripts are of other sites: `Reference` has ours
    )
    Reference(app)
    Site(app)
    resources = (
        details,
        images,
        events,
        labels,
        now,
        learned,
        checkpoints,
        columns,
        datasets,
        routes,
        references,  # before pictures, whose names of images may have slashes
        pictures,
        leaderboard,
        correlations,
        metrics,
        limits,
        me,
        keys,
        oidc,
        session,
        audit,
        webhooks,
        datasets_by_url,
        deletions,
    )
    kinds = [of(offered) for offered in KINDS.values() for of in (router_of, runs.router_of)]
    routers = [*kinds, *(module.router for module in resources)]
    for router in routers:
        app.include_router(router, dependencies=[Depends(only_known)])
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
