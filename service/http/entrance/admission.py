"""Submissions are refused before their body is read while too many runs are unfinished."""

import asyncio

from fastapi import Request, Response

from service.http.dependencies import asker_of, caller_of
from service.http.entrance.json_bodies import Handler, JsonRoute
from service.works.quotas import room as quotas
from service.works.waiting import room


class SubmissionRoute(JsonRoute):
    """A route that begins a run, if it takes a body that is posted."""

    def handler(self) -> Handler:
        handle = super().handler()
        if self.body_field is None or "POST" not in (self.methods or ()):
            return handle

        async def admitted(request: Request) -> Response:
            service = request.app.state.parts
            asked = service.records, service.most_runs, caller_of(request)
            await asyncio.to_thread(room.check, *asked)
            asker = asker_of(request)
            own = service.records.of(asker.team), service.allowed.of(asker)
            await asyncio.to_thread(quotas.check_submission, *own)
            return await handle(request)

        return admitted
