"""/v1/attention, /v1/trainings: overviews of a team's evaluations."""

from typing import Annotated

from fastapi import APIRouter, Query

from prescore.models.overviews import (
    DAYS_LOOKED_AT,
    LATEST_CHECKPOINTS,
    LATEST_LOOKED_AT,
    MOST_LISTED,
    AttentionList,
    CaptionerTrainingList,
)
from service.contract import errors
from service.contract.api.field_types import DatasetFilter, MetricName
from service.http import openapi
from service.http.dependencies import Service
from service.http.routers.leaderboard import USUAL_METRIC
from service.http.routers.request_parameters import Digits, check_known_metrics
from service.http.service_route import ServiceRoute
from service.runs import attention, training_lists
from service.runs.training_lists import TrainingQuery

router = APIRouter(prefix="/v1", tags=["evaluations"], route_class=ServiceRoute)
_Limit = Annotated[int, Query(ge=1, le=MOST_LISTED), Digits]


@router.get(
    "/attention",
    operation_id="list_attention",
    summary="List evaluations that need attention",
    description=f"Of the team's latest {LATEST_LOOKED_AT} evaluations, submitted in the last "
    f"{DAYS_LOOKED_AT} days: those that failed, whose gates failed, that say one caption for at "
    "least half of 20 or more images, or whose scores fell.",
)
def list_attention(service: Service, limit: _Limit = 20) -> AttentionList:
    return attention.list_attention(service, limit)


@router.get(
    "/trainings",
    operation_id="list_captioner_trainings",
    summary="List trainings of captioners",
    description="Checkpoints on a split with one label `run`, and a number as the label `step` or "
    f"`epoch`; of the latest {LATEST_CHECKPOINTS:,} evaluations with a label `run`.",
    responses=openapi.describe_refusals(errors.UnknownMetric),
)
def list_captioner_trainings(
    service: Service,
    dataset: Annotated[
        DatasetFilter | None,
        Query(description="Only on this dataset, or this split of it: `name[@version][/split]`."),
    ] = None,
    metric: Annotated[
        MetricName | None,
        Query(
            max_length=200,
            description="By default `cider_d`; of a training without it, the first post-gen "
            "metric that it has.",
        ),
    ] = None,
    limit: _Limit = 20,
) -> CaptionerTrainingList:
    if metric is not None:
        check_known_metrics([metric], "metric")
    return training_lists.list_trainings(
        service, TrainingQuery(dataset, metric, USUAL_METRIC, limit)
    )
