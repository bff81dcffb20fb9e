"""/v1/labels: which labels evaluations have."""

from typing import Annotated

from fastapi import APIRouter, Query

from prescore.models.evaluations import LabelList
from service.contract.api.field_types import DatasetFilter
from service.contract.errors import InvalidRequest
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute
from service.runs.browsing import labels

router = APIRouter(prefix="/v1/labels", tags=["evaluations"], route_class=ScopedRoute)


@router.get(
    "",
    operation_id="list_labels",
    summary="List the labels that are in use",
    responses=openapi.refusals(InvalidRequest),
)
def every(
    service: Service,
    dataset: Annotated[
        DatasetFilter | None,
        Query(
            description="Only of evaluations on this dataset, or this split of it: "
            "`name[@version][/split]`."
        ),
    ] = None,
) -> LabelList:
    """Names and values of the labels that the team's latest 5,000 evaluations have, those of the
    latest evaluation first: up to 100 names, and up to 100 values of each. Older evaluations are
    not counted.
    """
    return labels.used(service, dataset)
