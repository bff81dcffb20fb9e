"""/v1/datasets/{name}/fetch: a dataset that the service fetches from a URL."""

from functools import partial

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from prescore.models.datasets import Dataset
from service.contract.api.field_types import DatasetName
from service.contract.api.urls import DatasetUrlRequest
from service.contract.errors import (
    BodyTooLarge,
    Conflict,
    DigestMismatch,
    DiskFull,
    InvalidBundle,
    InvalidRequest,
    MalformedJson,
    Overloaded,
    ServiceUnavailable,
    StoreUnavailable,
    UnsupportedMedia,
    UrlFailed,
    UrlRefused,
)
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance import bundles
from service.http.entrance.fetched import fetched
from service.http.entrance.json_bodies import JsonRoute
from service.http.entrance.uploads import check_digest, judged

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=JsonRoute)
_LINKED = openapi.links("name", "get_dataset")


@router.post(
    "/{name}/fetch",
    operation_id="fetch_dataset",
    summary="Let the service fetch a version of a dataset",
    response_model=Dataset,
    response_description="A version with this content exists already: this one.",
    responses={
        200: _LINKED,
        201: {"model": Dataset, "description": "A new version.", **_LINKED},
        **openapi.refusals(
            *(UrlRefused, UrlFailed, DigestMismatch, InvalidBundle, InvalidRequest, MalformedJson),
            *(
                Conflict,
                UnsupportedMedia,
                BodyTooLarge,
                Overloaded,
                StoreUnavailable,
                ServiceUnavailable,
                DiskFull,
            ),
        ),
    },
)
async def fetch(
    name: DatasetName, asked: DatasetUrlRequest, request: Request, service: Service
) -> Response:
    """The tar at a URL, judged and stored as PUT does. Only where the operator has set
    `PRESCORE_DATASETS_BY_URL=on`; by https, from public addresses, with no redirects, at most 5 GB
    in at most 10 minutes. The answer comes when it is stored; who leaves ends it.
    """
    bundles.check_name(name)
    async with fetched(request, service, asked.url, bundles.TAR) as upload:
        check_digest(upload.digest, asked.digest)
        answer, new = await bundles.keep(service, name, upload, partial(judged, request))
    return JSONResponse(answer.model_dump(mode="json"), 201 if new else 200)
