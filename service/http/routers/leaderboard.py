"""/v1/datasets/{name}/leaderboard, …/history, …/correlations: the scores of a split."""

from dataclasses import replace
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query, Request, Response

from prescore.models.leaderboard import Leaderboard, ScoreHistory
from prescore.models.studies import Correlations, StudyIdf
from service.contract import errors
from service.contract.api.field_types import MOST_METRICS, MetricName, MetricNames, RankedName
from service.contract.metrics import catalogue
from service.http import openapi, responses
from service.http.dependencies import Service
from service.http.routers.datasets import DatasetReference
from service.http.routers.request_parameters import (
    Accept,
    Cursor,
    Digits,
    Split,
    check_known_metrics,
    read_metric_names,
)
from service.http.routers.run_answers import RETRY_AFTER
from service.http.service_route import ServiceRoute
from service.runs import correlations, leaderboard, run_lists
from service.runs.correlations import CorrelationsQuery
from service.runs.score_boards import BoardQuery

router = APIRouter(prefix="/v1/datasets/{name}", tags=["datasets"], route_class=ServiceRoute)
_RESPONSES: openapi.Responses = {
    200: {"content": {responses.CSV_TYPE: {"schema": {"type": "string"}}}},
    **openapi.describe_refusals(errors.NotFound, errors.InvalidCursor, errors.UnknownMetric),
}
USUAL_METRIC = "cider_d"
_PAGE = "A page; with `Accept: text/csv` the whole list as CSV."


def _narrowed(
    name: DatasetReference,
    request: Request,
    metrics: Annotated[
        MetricNames | None,
        Query(
            max_length=2000,
            description="Names, separated by commas: metrics that are shown beside it.",
            examples=["cider_d,meteor,spice"],
        ),
    ] = None,
    split: Split = None,
    signature: Annotated[
        str | None,
        Query(
            max_length=1000,
            description="Only scores with this signature; by default the latest score's.",
        ),
    ] = None,
) -> BoardQuery:
    others = read_metric_names(metrics, "metrics", MOST_METRICS)
    wanted = run_lists.read_label_filters(request.query_params.multi_items())
    return BoardQuery(name, split, USUAL_METRIC, signature, wanted, others)


def _by(narrowed: BoardQuery, metric: str | None, *, ranks: bool) -> BoardQuery:
    fit = (one for one in narrowed.beside if not ranks or _has_direction(one))
    by = next(fit, USUAL_METRIC) if metric is None else metric
    check_known_metrics([by], "metric")
    return replace(narrowed, metric=by, beside=[one for one in narrowed.beside if one != by])


def _has_direction(metric: str) -> bool:
    return catalogue.find_metric(metric).higher_is_better is not None


_Narrowed = Annotated[BoardQuery, Depends(_narrowed)]
_Metric = Annotated[
    MetricName | None,
    Query(max_length=200, description="By default the first of `metrics`, or `cider_d`."),
]
_Ranked = Annotated[
    RankedName | None,
    Query(
        max_length=200,
        description="A metric that has a direction. By default the first such one of `metrics`, or "
        "`cider_d`.",
    ),
]
_Limit = Annotated[int, Query(ge=1, le=1000), Digits]


@router.get(
    "/leaderboard",
    operation_id="get_leaderboard",
    summary="Rank a split's evaluations by a metric",
    response_model=Leaderboard,
    response_description=_PAGE,
    responses=_RESPONSES,
    openapi_extra={"parameters": [openapi.LABELS]},
)
def get_leaderboard(
    narrowed: _Narrowed,
    service: Service,
    accept: Accept = None,
    metric: _Ranked = None,
    order: Annotated[
        Literal["rank", "newest", "oldest", "name"],
        Query(
            description="Of the items: by rank, by time of submission, or by the name that pages "
            "show: of labels `run` (with `step` or `epoch`), else `name`, else `file`, else "
            "`branch` and `commit`, else the id. A cursor is of one order."
        ),
    ] = "rank",
    limit: _Limit = 50,
    cursor: Cursor = None,
) -> Response | Leaderboard:
    """The best first, unless another `order` is asked for. Evaluations that are not told apart are
    shown as ties. Equal scores of the same checkpoint, or of captions, are listed once: as the
    evaluation that was submitted first, with its labels, among those that have the labels that are
    asked for. Evaluations of a part of the split are left out.
    """
    asked = replace(_by(narrowed, metric, ranks=True), order=order)
    if responses.wants_csv(accept):
        return responses.answer_csv(leaderboard.build_leaderboard_table(service, asked))
    return leaderboard.build_leaderboard(service, asked, limit, cursor)


@router.get(
    "/history",
    operation_id="get_history",
    summary="A metric over time",
    response_model=ScoreHistory,
    response_description=_PAGE,
    responses=_RESPONSES,
    openapi_extra={"parameters": [openapi.LABELS]},
)
def get_history(
    narrowed: _Narrowed,
    service: Service,
    accept: Accept = None,
    metric: _Metric = None,
    limit: _Limit = 50,
    cursor: Cursor = None,
) -> Response | ScoreHistory:
    """The scores of a metric, the latest first; equal ones too."""
    asked = _by(narrowed, metric, ranks=False)
    if responses.wants_csv(accept):
        return responses.answer_csv(leaderboard.build_history_table(service, asked))
    return leaderboard.build_history(service, asked, limit, cursor)


@router.get(
    "/correlations",
    operation_id="get_correlations",
    summary="Correlations of pre-gen with post-gen scores",
    response_model=Correlations,
    response_description="The last study that finished, and the one under way; with `Accept: "
    "text/csv` the finished one in full as CSV (404 where there is none).",
    responses={
        200: {
            "content": {responses.CSV_TYPE: {"schema": {"type": "string"}}},
            **openapi.describe_headers("Retry-After"),
        },
        **openapi.describe_refusals(*openapi.STORED),
    },
)
def get_correlations(
    name: DatasetReference,
    service: Service,
    response: Response,
    accept: Accept = None,
    split: Split = None,
    idf: Annotated[
        StudyIdf,
        Query(
            description="Images in which CIDEr counts document frequencies: of the split, or of a "
            "stratum."
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
    asked = CorrelationsQuery(name, split, idf, limit)
    if responses.wants_csv(accept):
        return responses.answer_csv(correlations.build_correlations_table(service, asked))
    found = correlations.find_correlations(service, asked)
    if found.under_way is not None:
        response.headers["Retry-After"] = RETRY_AFTER
    return found
