"""/v1/datasets/{name}/images: small forms of pictures, where a dataset's owner shows them."""

import hashlib
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from prescore.models.datasets import Dataset
from service.contract.api.changes import DatasetChange
from service.contract.errors import (
    BlobDamaged,
    BlobMissing,
    BodyTooLarge,
    Conflict,
    InvalidRequest,
    MalformedJson,
    NotFound,
    StoreUnavailable,
    UnsupportedMedia,
)
from service.http import openapi
from service.http.dependencies import Caller, Service
from service.http.entrance.json_bodies import JsonRoute
from service.http.image_names import IMAGE, ImageName
from service.http.preferences import matches
from service.http.routers.datasets import Reference
from service.http.routers.parameters import IfNoneMatch
from service.stored import thumbnails

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=JsonRoute)
_WEBP = "image/webp"
_FOR_EVER = "private, max-age=31536000, immutable"  # a version's pictures do not change
_ASK_AGAIN = "private, no-cache"
_SENT = ("ETag", "Cache-Control")


@router.patch(
    "/{name}",
    operation_id="change_dataset",
    summary="Show a dataset's pictures, or hide them",
    responses=openapi.refusals(
        NotFound, Conflict, InvalidRequest, MalformedJson, UnsupportedMedia, BodyTooLarge
    ),
)
def patch(name: Reference, change: DatasetChange, service: Service, caller: Caller) -> Dataset:
    """Of the latest version, or of `name@version`. The version, its digest and its scores stay as
    they are.
    """
    return thumbnails.show_pictures(service, name, caller, shown=change.pictures_shown)


@router.get(
    f"/{{name}}/images/{IMAGE}",
    operation_id="get_picture",
    summary="Look at an image",
    response_class=Response,
    response_description="WebP: upright, without metadata; the first frame of an animation.",
    responses={
        200: {
            "content": {_WEBP: {"schema": {"type": "string", "format": "binary"}}},
            **openapi.headers(*_SENT),
        },
        304: {
            "description": "It is unchanged since the `ETag` in `If-None-Match`.",
            **openapi.headers(*_SENT),
        },
        **openapi.refusals(NotFound, BlobMissing, BlobDamaged, StoreUnavailable, InvalidRequest),
    },
)
def get(
    name: Reference,
    image: ImageName,
    service: Service,
    caller: Caller,
    size: Annotated[
        Literal["320", "960"], Query(description="Pixels of the longer side, at most.")
    ] = "320",
    if_none_match: IfNoneMatch = None,
) -> Response:
    """Only where its dataset says `pictures_shown`. 503 while it is made, the first time that
    somebody looks; 404 also where the picture cannot be decoded. No picture is enlarged.
    """
    content = thumbnails.read_thumbnail(service, name, image, int(size), caller)
    headers = {
        "ETag": f'"{hashlib.sha256(content).hexdigest()}"',
        "Cache-Control": _FOR_EVER if "@" in name else _ASK_AGAIN,
    }
    if matches(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=_WEBP)
