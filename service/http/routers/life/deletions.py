"""The routes that delete checkpoints, columns and datasets."""

from typing import Any

from fastapi import APIRouter, Response

from service.contract.api.field_types import Digest
from service.contract.errors import Conflict, InvalidRequest, NotFound
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute
from service.http.routers.datasets import Reference
from service.retention import upload_deletion

router = APIRouter(prefix="/v1", route_class=ScopedRoute)
_DELETED: dict[str, Any] = {
    "status_code": 204,
    "response_class": Response,
    "response_description": "It is deleted.",
    "responses": openapi.refusals(NotFound, InvalidRequest, Conflict),
}


@router.delete(
    "/checkpoints/{digest}",
    operation_id="delete_checkpoint",
    summary="Delete a checkpoint",
    tags=["checkpoints"],
    **_DELETED,
)
def delete_checkpoint(digest: Digest, service: Service) -> Response:
    """409 while runs of it have not ended, whose ids are named. Evaluations that have ended keep
    their scores; sent again, it is scored again at no cost where they are.
    """
    upload_deletion.delete_checkpoint(service, digest)
    return Response(status_code=204)


@router.delete(
    "/columns/{digest}",
    operation_id="delete_columns",
    summary="Delete columns",
    tags=["columns"],
    **_DELETED,
)
def delete_columns(digest: Digest, service: Service) -> Response:
    """409 while runs of them have not ended, whose ids are named. Evaluations that have ended keep
    their scores.
    """
    upload_deletion.delete_columns(service, digest)
    return Response(status_code=204)


@router.delete(
    "/datasets/{name}",
    operation_id="delete_dataset",
    summary="Delete a dataset, or a version of it",
    tags=["datasets"],
    **_DELETED,
)
def delete_dataset(name: Reference, service: Service) -> Response:
    """`name` is all its versions, `name@v1` a certain one. 409 while there are runs on them, of
    which the first are named. The number of a deleted version is not given again.
    """
    upload_deletion.delete_dataset(service, name)
    return Response(status_code=204)
