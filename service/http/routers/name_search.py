"""/v1/search: splits, trainings, evaluations, metrics and images by a part of a name."""

from typing import Annotated

from fastapi import APIRouter, Query

from prescore.models.search import MOST_MATCHES, NameMatches
from service.contract.api.field_types import NoNul
from service.http.dependencies import Service
from service.http.routers.request_parameters import Digits
from service.http.service_route import ServiceRoute
from service.runs import name_search

router = APIRouter(prefix="/v1/search", tags=["search"], route_class=ServiceRoute)


@router.get("", operation_id="search_names", summary="Find things by their names")
def search_names(
    service: Service,
    q: Annotated[
        str,
        NoNul,
        Query(
            min_length=1,
            max_length=100,
            description="A part of the name, in upper or lower case.",
            examples=["flickr"],
            json_schema_extra={"pattern": r"^[^\x00]*$"},
        ),
    ],
    limit: Annotated[int, Query(ge=1, le=MOST_MATCHES), Digits] = 20,
) -> NameMatches:
    """Splits by `name/split`; trainings by the label `run`; evaluations by the value of a label,
    the note or the id; metrics; images of the latest versions of datasets, of datasets with more
    than 50,000 images only by the beginning of their names.
    """
    return NameMatches(items=name_search.search_names(service, q, limit))
