"""/v1/checkpoints: upload by digest, and describe."""

from fastapi import APIRouter, Request, Response

from prescore.models.checkpoints import Checkpoint
from service.contract.api.field_types import Digest
from service.contract.errors import (
    BodyTooLarge,
    DigestMismatch,
    DiskFull,
    InvalidCheckpoint,
    InvalidRequest,
    NotFound,
    ServiceUnavailable,
    StoreUnavailable,
)
from service.contract.formats import model_formats
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute
from service.http.entrance.by_digest import ByDigest
from service.http.entrance.uploads import Early
from service.stored import checkpoints

router = APIRouter(prefix="/v1/checkpoints", tags=["checkpoints"], route_class=ScopedRoute)
_LINKED = openapi.links("digest", "get_checkpoint", "has_checkpoint")
FILES = ByDigest(
    "checkpoint",
    checkpoints,
    Early("checkpoint", model_formats.count_model_header_bytes),
    prepare=checkpoints.prepare_checkpoint,
)


@router.head(
    "/{digest}",
    operation_id="has_checkpoint",
    summary="Check whether a checkpoint is stored",
    response_description="It is stored and need not be uploaded.",
    responses=openapi.refusals(NotFound, InvalidRequest, StoreUnavailable),
)
def head(digest: Digest, service: Service) -> Response:
    """Use this before an upload, so that no checkpoint is sent twice."""
    return FILES.head(service, digest)


@router.put(
    "/{digest}",
    operation_id="upload_checkpoint",
    summary="Upload a checkpoint",
    response_model=Checkpoint,
    response_description="It was stored already.",
    responses={
        200: _LINKED,
        201: {"model": Checkpoint, "description": "Stored.", **_LINKED},
        **openapi.refusals(
            BodyTooLarge,
            DigestMismatch,
            InvalidCheckpoint,
            InvalidRequest,
            StoreUnavailable,
            ServiceUnavailable,
            DiskFull,
        ),
    },
    openapi_extra=openapi.body(
        "The file: safetensors with Prescore's metadata, or with that of a plug-in on the workers "
        "(`deploy/guide/plugins.md`); or a tar or a zip of a state dict with its map and its words "
        "(`deploy/guide/converting.md`), of what transformers has saved, or of an ONNX bundle.",
        "application/octet-stream",
    ),
)
async def put(digest: Digest, request: Request, service: Service) -> Response:
    """Send the raw bytes; their SHA-256 must be the one in the URL, also where that file is stored
    already: `HEAD` says so before anything is sent. Header, metadata and config are checked as soon
    as they have come, before the rest of the file; the tensors' values by the first task that reads
    them. What is not in Prescore's own form is converted or verified by a task: `state` tells when
    it is ready, and evaluations wait for it.
    """
    return await FILES.put(service, digest, request)


@router.get(
    "/{digest}",
    operation_id="get_checkpoint",
    summary="Describe a checkpoint",
    responses=openapi.refusals(NotFound, InvalidRequest),
)
def get(digest: Digest, service: Service) -> Checkpoint:
    """The facts in its header, and the splits on which it was scored."""
    return checkpoints.get(service.records, digest)
