"""/v1/comparisons/{id}/images, …/words: every image of a comparison, and exchanged words."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query

from prescore.models.comparisons import ComparedImagePage, WordExchanges
from service.contract import errors
from service.contract.api.field_types import MetricName
from service.http import openapi
from service.http.dependencies import Service
from service.http.routers.request_parameters import ComparisonIdentity, Cursor, Digits
from service.http.service_route import ServiceRoute
from service.runs import comparisons, word_exchanges

router = APIRouter(prefix="/v1/comparisons/{id}", tags=["comparisons"], route_class=ServiceRoute)


@router.get(
    "/images",
    operation_id="list_compared_images",
    summary="Every image with both captions and their scores",
    responses=openapi.describe_refusals(
        *openapi.STORED, errors.InvalidCursor, errors.UnknownMetric
    ),
)
def list_compared_images(
    id: ComparisonIdentity,
    service: Service,
    metric: Annotated[
        MetricName | None,
        Query(
            max_length=200,
            description="A post-gen metric of the comparison, of which single captions have "
            "scores. By default the first one.",
            examples=["bleu_4"],
        ),
    ] = None,
    sort: Annotated[
        Literal["difference", "-difference", "a", "-a", "b", "-b"] | None,
        Query(
            description="By the score of one of the two, or by the difference a - b, the lowest "
            "first; after a `-`, the highest first. Equal ones are in the dataset's order, unknown "
            "ones at the end. By default all are in the dataset's order."
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=10_000), Digits] = 1000,
    cursor: Cursor = None,
) -> ComparedImagePage:
    """Both captions of each image, and their scores by one metric; 404 where single captions have
    none, as by pre-gen metrics.
    """
    return comparisons.build_image_page(service, id, metric, sort, limit, cursor)


@router.get(
    "/words",
    operation_id="list_exchanged_words",
    summary="Words that one system says in the place of the other's",
    responses=openapi.describe_refusals(*openapi.STORED, errors.UnknownMetric),
)
def list_exchanged_words(
    id: ComparisonIdentity,
    service: Service,
    metric: Annotated[
        MetricName | None,
        Query(
            max_length=200,
            description="Only images of which both captions have a score by this metric of the "
            "comparison. By default all images.",
            examples=["bleu_4"],
        ),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000), Digits] = 10,
) -> WordExchanges:
    """Content words (no English function words) that stand in the place of each other in the two
    captions of an image: between the same words, by a longest common subsequence of their first 40
    words. Each pair of words is listed once.
    """
    return word_exchanges.find_word_exchanges(service, id, metric, limit)
