"""Routes of `/v1`, and the checks of a request before its endpoint is called."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from service.contract.askers import Asker, Scope
from service.engine import quotas
from service.http import json_bodies
from service.http.access import (
    METERED_OPERATIONS,
    NEEDED,
    count_upload,
    needs_no_key,
    open_meter,
    require_scope,
)
from service.http.dependencies import AppParts, find_asker

BINARY_OPERATIONS = frozenset({"inspect_captions"})  # which check the type of their bodies
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class ServiceRoute(APIRoute):
    """A route for those whose key has the scope that it needs. Before its body is read, there must
    be room for the run or the upload that it begins. A JSON body is strict JSON and a valid model.
    """

    def get_route_handler(self) -> Handler:
        handle, operation = super().get_route_handler(), self.operation_id or ""
        is_open = all(needs_no_key(method, self.path) for method in self.methods or ())
        needed = NEEDED.get(operation, Scope.READ)
        begins_run = operation.startswith("submit_")
        is_metered = operation in METERED_OPERATIONS
        read_json = None if self.body_field is None else json_bodies.make_reader(self)
        is_json = not is_metered and operation not in BINARY_OPERATIONS
        refuses_forms = read_json is None and is_json and "POST" in (self.methods or ())

        async def answer(request: Request) -> Response:
            if read_json is not None:
                request = await read_json(request)
            return await handle(request)

        async def checked(request: Request) -> Response:
            if not is_open:
                require_scope(find_asker(request), needed)
            if begins_run:
                service = request.app.state.parts
                await asyncio.to_thread(_check_room, service, find_asker(request))
            if refuses_forms:
                json_bodies.refuse_form(request)
            meter = await open_meter(request) if is_metered else None
            if meter is None:
                return await answer(request)
            try:
                response = await answer(request)
            except Exception as error:
                await count_upload(request, meter, error)
                raise
            await count_upload(request, meter, response)
            return response

        return checked


def _check_room(service: AppParts, asker: Asker) -> None:
    """QueueFull or LimitReached where there is no room for a run of this asker."""
    quotas.check_unfinished_runs(service.records, service.most_runs, asker.caller)
    quotas.check_submission_quota(service.records.of(asker.team), service.allowed.of(asker))
