"""/v1/datasets/{name}/images/{image}/references: what people have written about an image."""

from fastapi import APIRouter
from starlette.routing import Match
from starlette.types import Scope

from prescore.models.datasets import References
from service.contract.errors import BlobDamaged, BlobMissing, NotFound, StoreUnavailable
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute
from service.http.image_names import IMAGE, ImageName
from service.http.routers.datasets import Reference
from service.stored import thumbnails

_END = "/references"


class _References(ScopedRoute):
    """An image may be called `a/references`: its picture is asked for with the slash as %2F, which
    the path does not tell from a slash any more.
    """

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if not scope.get("raw_path", _END.encode()).endswith(_END.encode()):
            return Match.NONE, {}
        return super().matches(scope)


router = APIRouter(prefix="/v1/datasets", tags=["datasets"], route_class=_References)


@router.get(
    f"/{{name}}/images/{IMAGE}{_END}",
    operation_id="get_references",
    summary="Read what people wrote about an image",
    responses=openapi.refusals(NotFound, BlobMissing, BlobDamaged, StoreUnavailable),
)
def get(name: Reference, image: ImageName, service: Service) -> References:
    """The image's references, in the dataset's order. For the picture of an image whose own name
    ends in `/references`, write that slash as `%2F`.
    """
    return thumbnails.read_references(service, name, image)
