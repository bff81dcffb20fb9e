"""/v1/learned/{id}/model: the model of a trained metric."""

from fastapi import APIRouter, Response

from service.contract.errors import (
    BlobDamaged,
    BlobMissing,
    Conflict,
    NotFound,
    StoreUnavailable,
)
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute
from service.http.routers.parameters import TrainingIdentity
from service.runs import training

router = APIRouter(prefix="/v1/learned", tags=["learned"], route_class=ScopedRoute)
_FILE = "application/octet-stream"


@router.get(
    "/{id}/model",
    operation_id="get_model",
    summary="Download the model of a metric",
    response_class=Response,
    responses={
        200: {
            "description": "A safetensors file, which `prescore assets add learned` accepts.",
            "content": {_FILE: {"schema": {"type": "string", "format": "binary"}}},
        },
        **openapi.refusals(NotFound, Conflict, BlobMissing, BlobDamaged, StoreUnavailable),
    },
)
def fetch(id: TrainingIdentity, service: Service) -> Response:
    """The model, to score captions on another machine."""
    path = training.model(service, id)
    return Response(path.read_bytes(), media_type=_FILE)
