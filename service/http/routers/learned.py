"""/v1/learned: metrics that are trained on what people and captioners say."""

import asyncio

from fastapi import APIRouter, Response

from service.contract.api.learned import LearnedIn, LearnedOut
from service.contract.errors import BlobDamaged, BlobMissing, NotFound, StoreUnavailable
from service.http import openapi
from service.http.dependencies import Service
from service.http.json_bodies import JsonRoute
from service.http.routers import polling
from service.http.routers.parameters import IfNoneMatch, LearnedIdentity, Prefer
from service.runs import results, training

router = APIRouter(prefix="/v1/learned", tags=["learned"], route_class=JsonRoute)
_FILE = "application/octet-stream"


@router.post(
    "",
    operation_id="submit_training",
    summary="Train a metric",
    status_code=202,
    response_model=LearnedOut,
    response_description="Taken in: poll for the model.",
    responses=polling.taken_in(LearnedOut, "it has ended"),
)
async def submit(request: LearnedIn, service: Service, prefer: Prefer = None) -> Response:
    """How likely a person wrote a caption (NNEval), learnt from other metrics' scores of people's
    captions and of three captioners' or more. No photo is trained on and tested with, under
    whatever name. Evaluations then ask for it by its `metric`; the same training is done once.
    """
    identity = await asyncio.to_thread(
        training.submit, service.records, service.blobs, service.places, request
    )
    return await polling.submitted(
        service,
        f"/v1/learned/{identity}",
        prefer,
        lambda: training.get(service.records, identity),
        results.is_over,
    )


@router.get(
    "/{id}",
    operation_id="get_training",
    summary="Look at a metric's training",
    response_model=LearnedOut,
    responses=polling.described("It is"),
)
async def get(
    id: LearnedIdentity, service: Service, if_none_match: IfNoneMatch = None, prefer: Prefer = None
) -> Response:
    """Polled as an evaluation is."""
    return await polling.answer(
        service, id, if_none_match, prefer, lambda: training.get(service.records, id)
    )


@router.get(
    "/{id}/model",
    operation_id="get_model",
    summary="Fetch the model of a metric",
    response_class=Response,
    responses={
        200: {
            "description": "safetensors, as `prescore assets add learned` takes it.",
            "content": {_FILE: {"schema": {"type": "string", "format": "binary"}}},
        },
        **openapi.refusals(NotFound, BlobMissing, BlobDamaged, StoreUnavailable),
    },
)
def fetch(id: LearnedIdentity, service: Service) -> Response:
    """For who scores captions elsewhere."""
    path = training.model(service.records, service.blobs, id)
    return Response(path.read_bytes(), media_type=_FILE)


@router.post(
    "/{id}/cancel",
    operation_id="cancel_training",
    summary="Cancel a metric's training",
    status_code=202,
    response_model=LearnedOut,
    response_description="It has ended.",
    responses=polling.CANCELED,
)
def cancel(id: LearnedIdentity, service: Service) -> Response:
    """Ends it, unless another one waits for the same."""
    return polling.canceled(
        service, id, f"/v1/learned/{id}", lambda: training.get(service.records, id)
    )
