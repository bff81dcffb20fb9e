"""Submissions are refused before their body is read while too many runs are unfinished."""

import asyncio

from fastapi import Request, Response

from service.contract.askers import Asker
from service.engine import quotas
from service.http.dependencies import Running, asker_of
from service.http.entrance.json_bodies import Handler, JsonRoute


class SubmissionRoute(JsonRoute):
    """A route that begins a run, if it takes a body that is posted."""

    def handler(self) -> Handler:
        handle = super().handler()
        if self.body_field is None or "POST" not in (self.methods or ()):
            return handle

        async def admitted(request: Request) -> Response:
            await asyncio.to_thread(_check, request.app.state.parts, asker_of(request))
            return await handle(request)

        return admitted


def _check(service: Running, asker: Asker) -> None:
    """QueueFull or LimitReached where there is no room for a run of this asker."""
    quotas.check_unfinished_runs(service.records, service.most_runs, asker.caller)
    quotas.check_submission_quota(service.records.of(asker.team), service.allowed.of(asker))
