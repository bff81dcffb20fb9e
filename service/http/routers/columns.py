"""/v1/columns: upload what somebody's own code computed by digest, and describe it."""

from fastapi import APIRouter, Request, Response

from prescore.models.checkpoints import Columns
from service.contract.api.field_types import Digest
from service.contract.errors import (
    BodyTooLarge,
    ColumnsRefused,
    DigestMismatch,
    DiskFull,
    InvalidRequest,
    NotFound,
    ServiceUnavailable,
    StoreUnavailable,
)
from service.contract.formats import columns_header
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute
from service.http.entrance.by_digest import ByDigest
from service.http.entrance.uploads import Early
from service.stored import columns

router = APIRouter(prefix="/v1/columns", tags=["columns"], route_class=ScopedRoute)
_LINKED = openapi.links("digest", "get_columns", "has_columns")
FILES = ByDigest(
    "columns",
    columns,
    Early("columns header", columns_header.count_columns_header_bytes),
    whole="columns",
)


@router.head(
    "/{digest}",
    operation_id="has_columns",
    summary="Check whether columns are stored",
    response_description="They are stored and need not be uploaded.",
    responses=openapi.refusals(NotFound, InvalidRequest, StoreUnavailable),
)
def head(digest: Digest, service: Service) -> Response:
    """Use this before an upload, so that no file is sent twice."""
    return FILES.head(service, digest)


@router.put(
    "/{digest}",
    operation_id="upload_columns",
    summary="Upload columns",
    response_model=Columns,
    response_description="They were stored already.",
    responses={
        200: _LINKED,
        201: {"model": Columns, "description": "Stored.", **_LINKED},
        **openapi.refusals(
            *(BodyTooLarge, DigestMismatch, ColumnsRefused, InvalidRequest),
            *(StoreUnavailable, ServiceUnavailable, DiskFull),
        ),
    },
    openapi_extra=openapi.body(
        "The file: safetensors with the log-probability and rank of every reference token, as "
        "`prescore.Recorder` writes it.",
        "application/octet-stream",
    ),
)
async def put(digest: Digest, request: Request, service: Service) -> Response:
    """Send the raw bytes; their SHA-256 must be the one in the URL, also where that file is stored
    already: `HEAD` says so before anything is sent. The header is checked as soon as it has come,
    all values at the end; errors name image, reference and token.
    """
    return await FILES.put(service, digest, request)


@router.get(
    "/{digest}",
    operation_id="get_columns",
    summary="Describe columns",
    responses=openapi.refusals(NotFound, InvalidRequest),
)
def get(digest: Digest, service: Service) -> Columns:
    """What their file says of them."""
    return columns.get(service.records, digest)
