"""/v1/datasets/{name}/leaderboard and …/history: one metric of a split's evaluations."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Query, Request, Response

from prescore.models.leaderboard import Leaderboard, ScoreHistory
from service.contract.api.field_types import MOST_METRICS, MetricName, MetricNames, RankedName
from service.contract.errors import InvalidCursor, InvalidRequest, NotFound, UnknownMetric
from service.contract.metrics import catalogue
from service.http import csv_answers, openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute
from service.http.routers.datasets import Reference
from service.http.routers.parameters import Cursor, Digits
from service.runs import search
from service.runs.boards import leaderboard
from service.runs.boards.finding import Asked

router = APIRouter(prefix="/v1/datasets/{name}", tags=["datasets"], route_class=ScopedRoute)
_RESPONSES: openapi.Responses = {
    200: {"content": {csv_answers.TYPE: {"schema": {"type": "string"}}}},
    **openapi.refusals(NotFound, InvalidCursor, InvalidRequest, UnknownMetric),
}
_USUAL = "cider_d"
_PAGE = "A page; with `Accept: text/csv` the whole list as CSV."


def _narrowed(
    name: Reference,
    request: Request,
    metrics: Annotated[
        MetricNames | None,
        Query(
            max_length=2000,
            description="Names, separated by commas: metrics that are shown beside it.",
            examples=["cider_d,meteor,spice"],
        ),
    ] = None,
    split: Annotated[
        str | None,
        Query(max_length=100, description="By default the only split, or `test`."),
    ] = None,
    signature: Annotated[
        str | None,
        Query(
            max_length=1000,
            description="Only scores with this signature; by default the latest score's.",
        ),
    ] = None,
) -> Asked:
    others = _names(metrics)
    _check_known(others, "metrics")
    wanted = search.wanted_labels(request.query_params.multi_items())
    return Asked(name, split, _USUAL, signature, wanted, others)


def _by(narrowed: Asked, metric: str | None, *, ranks: bool) -> Asked:
    fit = (one for one in narrowed.beside if not ranks or _has_direction(one))
    by = next(fit, _USUAL) if metric is None else metric
    _check_known([by], "metric")
    return replace(narrowed, metric=by, beside=[one for one in narrowed.beside if one != by])


def _has_direction(metric: str) -> bool:
    return catalogue.find_metric(metric).higher_is_better is not None


def _names(given: str | None) -> list[str]:
    if given is None:
        return []
    found = list(dict.fromkeys(name.lstrip(" ") for name in given.split(",")))
    if len(found) > MOST_METRICS:
        raise InvalidRequest(
            f"expected at most {MOST_METRICS} metrics, found {len(found)}",
            [("/query/metrics", "too many")],
        )
    return found


def _check_known(names: Iterable[str], parameter: str) -> None:
    try:
        for name in names:
            catalogue.find_metric(name)
    except UnknownMetric as error:
        error.pointer = f"/query/{parameter}"
        raise


_Narrowed = Annotated[Asked, Depends(_narrowed)]
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
_Accept = Annotated[str | None, Header(include_in_schema=False)]


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
    accept: _Accept = None,
    metric: _Ranked = None,
    limit: _Limit = 50,
    cursor: Cursor = None,
) -> Response | Leaderboard:
    """The best first. Evaluations whose intervals overlap are shown as ties. Equal scores of the
    same checkpoint, or of captions, are listed once: as the evaluation that was submitted first,
    with its labels, among those that have the labels that are asked for. Evaluations of a part of
    the split are left out.
    """
    asked = _by(narrowed, metric, ranks=True)
    if csv_answers.is_wanted(accept):
        return csv_answers.answer(leaderboard.sheet(leaderboard.ranked(service, asked)))
    return leaderboard.ranked(service, asked, limit, cursor)


@router.get(
    "/history",
    operation_id="get_history",
    summary="A metric over time",
    response_model=ScoreHistory,
    response_description=_PAGE,
    responses=_RESPONSES,
    openapi_extra={"parameters": [openapi.LABELS]},
)
def history(
    narrowed: _Narrowed,
    service: Service,
    accept: _Accept = None,
    metric: _Metric = None,
    limit: _Limit = 50,
    cursor: Cursor = None,
) -> Response | ScoreHistory:
    """The scores of a metric, the latest first; equal ones too."""
    asked = _by(narrowed, metric, ranks=False)
    if csv_answers.is_wanted(accept):
        return csv_answers.answer(leaderboard.sheet(leaderboard.history(service, asked)))
    return leaderboard.history(service, asked, limit, cursor)
