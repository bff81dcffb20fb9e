"""/v1/learned/{id}/model: what the training of a metric has made."""

from fastapi import APIRouter, Response

from service.contract.errors import BlobDamaged, BlobMissing, NotFound, StoreUnavailable
from service.http import openapi
from service.http.dependencies import Service
from service.http.routers.parameters import TrainingIdentity
from service.runs import training

router = APIRouter(prefix="/v1/learned", tags=["learned"])
_FILE = "application/octet-stream"


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
def fetch(id: TrainingIdentity, service: Service) -> Response:
    """For who scores captions elsewhere."""
    path = training.model(service, id)
    return Response(path.read_bytes(), media_type=_FILE)
