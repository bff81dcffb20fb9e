"""Answers of both protocols."""

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from service.contract.errors import OffsetMismatch, OtherVersion, PrescoreError, TooLarge
from service.http import problems
from service.http.entrance.access import ScopedRoute
from service.http.entrance.json_bodies import Handler
from service.http.resumable import fields
from service.http.resumable.finishing import Outcome
from service.stored.unfinished.rows import Unfinished


class UploadRoute(ScopedRoute):
    """A route whose refusals too say what the protocols want to be said."""

    def handler(self) -> Handler:
        handle = super().handler()

        async def told(request: Request) -> Response:
            try:
                tus = fields.speaks_tus(request)
                answer = await handle(request)
            except PrescoreError as error:
                tus = "tus-resumable" in request.headers
                answer = problems.refused(request, error)
                answer.headers.update(_of_refusal(request, error))
            if tus:
                answer.headers["Tus-Resumable"] = fields.TUS
            return answer

        return told


def _of_refusal(request: Request, error: PrescoreError) -> dict[str, str]:
    found: dict[str, str] = {}
    if isinstance(error, OffsetMismatch):
        found["Upload-Offset"] = str(error.offset)
    if isinstance(error, TooLarge):
        found |= fields.limit()
    if isinstance(error, OtherVersion):
        found["Tus-Version"] = fields.TUS
    if getattr(request.state, "upload_complete", False):
        found["Upload-Complete"] = "?1"
    return found


def stored(outcome: Outcome, upload: Unfinished) -> Response:
    said = {"Location": outcome.location, "Upload-Complete": "?1"}
    said["Upload-Offset"] = str(upload.received)
    return JSONResponse(outcome.answer, 201 if outcome.is_new else 200, said)


def created(outcome: Outcome, place: dict[str, str], upload: Unfinished) -> Response:
    said = {"Upload-Offset": str(upload.received), "Content-Location": outcome.location}
    return Response(None, 201, {**place, **said})
