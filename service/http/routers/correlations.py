"""/v1/datasets/{name}/correlations: the latest correlation study of a split."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Response

from prescore.models.studies import Correlations, StudyIdf
from service.contract.errors import (
    BlobDamaged,
    BlobMissing,
    InvalidRequest,
    NotFound,
    StoreUnavailable,
)
from service.http import csv_answers, openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute
from service.http.routers.datasets import Reference
from service.http.routers.parameters import Digits
from service.http.routers.polling import RETRY_AFTER
from service.runs import correlations
from service.runs.correlations import Asked

router = APIRouter(prefix="/v1/datasets/{name}", tags=["datasets"], route_class=ScopedRoute)


@router.get(
    "/correlations",
    operation_id="get_correlations",
    summary="Correlations of pre-gen with post-gen scores",
    response_model=Correlations,
    response_description="The last study that finished, and the one under way; with `Accept: "
    "text/csv` the finished one in full as CSV (404 where there is none).",
    responses={
        200: {
            "content": {csv_answers.TYPE: {"schema": {"type": "string"}}},
            **openapi.headers("Retry-After"),
        },
        **openapi.refusals(NotFound, BlobMissing, BlobDamaged, StoreUnavailable, InvalidRequest),
    },
)
def get_correlations(
    name: Reference,
    service: Service,
    response: Response,
    accept: Annotated[str | None, Header(include_in_schema=False)] = None,
    split: Annotated[
        str | None,
        Query(max_length=100, description="By default the only split, or `test`."),
    ] = None,
    idf: Annotated[
        StudyIdf,
        Query(
            description="Where CIDEr counts document frequencies: in the split, or in each stratum."
        ),
    ] = "dataset",
    limit: Annotated[
        int,
        Query(
            ge=0,
            le=1000,
            description="Pre-gen metrics for each post-gen metric, besides the headline ones.",
        ),
        Digits,
    ] = 20,
) -> Response | Correlations:
    """The last correlation study of the split that finished, and the one under way. This starts no
    study; `POST /v1/studies` does.
    """
    asked = Asked(name, split, idf, limit)
    if csv_answers.is_wanted(accept):
        return csv_answers.answer(correlations.sheet(service, asked))
    found = correlations.look(service, asked)
    if found.under_way is not None:
        response.headers["Retry-After"] = RETRY_AFTER
    return found
