"""/v1/checkpoints and /v1/columns: upload by digest, description, deletion."""

from fastapi import APIRouter, Request, Response

from prescore.models.checkpoints import Checkpoint, Columns
from service.contract import errors
from service.contract.api.field_types import Digest
from service.contract.formats import columns_header, model_formats
from service.http import openapi
from service.http.dependencies import Service
from service.http.service_route import ServiceRoute
from service.http.uploads import DigestFiles, EarlyQuestion
from service.retention import upload_deletion
from service.stored import checkpoints, columns

router = APIRouter(prefix="/v1/checkpoints", tags=["checkpoints"], route_class=ServiceRoute)
_CHECKPOINT_LINKS = openapi.describe_links("digest", "get_checkpoint", "has_checkpoint")
CHECKPOINT_FILES = DigestFiles(
    "checkpoint",
    checkpoints,
    EarlyQuestion("checkpoint", model_formats.count_model_header_bytes),
    prepare=checkpoints.prepare_checkpoint,
)


@router.head(
    "/{digest}",
    operation_id="has_checkpoint",
    summary="Check whether a checkpoint is stored",
    response_description="It is stored and need not be uploaded.",
    responses=openapi.describe_refusals(errors.NotFound, errors.StoreUnavailable),
)
def has_checkpoint(digest: Digest, service: Service) -> Response:
    """Use this before an upload, so that no checkpoint is sent twice."""
    return CHECKPOINT_FILES.head(service, digest)


@router.put(
    "/{digest}",
    operation_id="upload_checkpoint",
    summary="Upload a checkpoint",
    response_model=Checkpoint,
    response_description="It was stored already.",
    responses=openapi.describe_storing(
        Checkpoint, "Stored.", _CHECKPOINT_LINKS, errors.DigestMismatch, errors.InvalidCheckpoint
    ),
    openapi_extra=openapi.describe_body(
        "The file: safetensors with Prescore's metadata, or with that of a plug-in on the workers "
        "(`deploy/guide/plugins-and-sandbox.md`); or a tar or a zip of a state dict with its map "
        "and its words (`deploy/guide/bring-a-model.md`), of what transformers has saved, of an "
        "adapter of PEFT, or of an ONNX bundle.",
        "application/octet-stream",
    ),
)
async def upload_checkpoint(digest: Digest, request: Request, service: Service) -> Response:
    """Send the raw bytes; their SHA-256 must be the one in the URL, also where that file is stored
    already: `HEAD` says so before anything is sent. Header, metadata and config are checked as soon
    as they have come, before the rest of the file; the tensors' values by the first task that reads
    them. What is not in Prescore's own form is converted or verified by a task: `state` tells when
    it is ready, and evaluations wait for it.
    """
    return await CHECKPOINT_FILES.put(service, digest, request)


@router.get(
    "/{digest}",
    operation_id="get_checkpoint",
    summary="Describe a checkpoint",
    responses=openapi.describe_refusals(errors.NotFound),
)
def get_checkpoint(digest: Digest, service: Service) -> Checkpoint:
    """The facts in its header, and the splits on which it was scored."""
    return checkpoints.get(service, digest)


@router.delete(
    "/{digest}",
    operation_id="delete_checkpoint",
    summary="Delete a checkpoint",
    **openapi.DELETED,
)
def delete_checkpoint(digest: Digest, service: Service) -> Response:
    """Delete a checkpoint, unless runs of it have not ended: 409 names them. Evaluations that have
    ended keep their scores; sent again, it is scored again at no cost where they are.
    """
    upload_deletion.delete_checkpoint(service, digest)
    return Response(status_code=204)


columns_router = APIRouter(prefix="/v1/columns", tags=["columns"], route_class=ServiceRoute)
_COLUMNS_LINKS = openapi.describe_links("digest", "get_columns", "has_columns")
COLUMNS_FILES = DigestFiles(
    "columns",
    columns,
    EarlyQuestion("columns header", columns_header.count_columns_header_bytes),
    whole="columns",
)


@columns_router.head(
    "/{digest}",
    operation_id="has_columns",
    summary="Check whether columns are stored",
    response_description="They are stored and need not be uploaded.",
    responses=openapi.describe_refusals(errors.NotFound, errors.StoreUnavailable),
)
def has_columns(digest: Digest, service: Service) -> Response:
    """Use this before an upload, so that no file is sent twice."""
    return COLUMNS_FILES.head(service, digest)


@columns_router.put(
    "/{digest}",
    operation_id="upload_columns",
    summary="Upload columns",
    response_model=Columns,
    response_description="They were stored already.",
    responses=openapi.describe_storing(
        Columns, "Stored.", _COLUMNS_LINKS, errors.DigestMismatch, errors.ColumnsRefused
    ),
    openapi_extra=openapi.describe_body(
        "The file: safetensors with the log-probability and rank of every reference token, as "
        "`prescore.Recorder` writes it.",
        "application/octet-stream",
    ),
)
async def upload_columns(digest: Digest, request: Request, service: Service) -> Response:
    """Send the raw bytes; their SHA-256 must be the one in the URL, also where that file is stored
    already: `HEAD` says so before anything is sent. The header is checked as soon as it has come,
    all values at the end; errors name image, reference and token.
    """
    return await COLUMNS_FILES.put(service, digest, request)


@columns_router.get(
    "/{digest}",
    operation_id="get_columns",
    summary="Describe columns",
    responses=openapi.describe_refusals(errors.NotFound),
)
def get_columns(digest: Digest, service: Service) -> Columns:
    """The facts in the header of their file."""
    return columns.get(service, digest)


@columns_router.delete(
    "/{digest}",
    operation_id="delete_columns",
    summary="Delete columns",
    **openapi.DELETED,
)
def delete_columns(digest: Digest, service: Service) -> Response:
    """Delete columns, unless runs of them have not ended: 409 names them. Evaluations that have
    ended keep their scores.
    """
    upload_deletion.delete_columns(service, digest)
    return Response(status_code=204)
