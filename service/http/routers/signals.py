"""/v1/datasets/{name}/signal, …/ranking: trainings on a split, by evaluations with the labels `run`
and `step`.
"""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from prescore.models.signals import SignalCard
from prescore.models.sweeps import SweepRanking
from service.contract import errors
from service.contract.api.field_types import RankedName
from service.http import openapi, responses
from service.http.dependencies import Service
from service.http.routers.datasets import DatasetReference
from service.http.routers.leaderboard import USUAL_METRIC
from service.http.routers.request_parameters import Accept, Digits, Split, check_known_metrics
from service.http.service_route import ServiceRoute
from service.runs import run_lists, signal_cards, sweep_rankings
from service.runs.signal_cards import SignalQuery
from service.runs.sweep_scores import RankingQuery

router = APIRouter(prefix="/v1/datasets/{name}", tags=["datasets"], route_class=ServiceRoute)
_RESPONSES: openapi.Responses = {
    200: {"content": {responses.CSV_TYPE: {"schema": {"type": "string"}}}},
    **openapi.describe_refusals(errors.NotFound, errors.UnknownMetric),
}
_Average = Annotated[
    int,
    Query(
        ge=1,
        le=100,
        description="Checkpoints whose mean is an early, or a final, score: the last ones up "
        "to there.",
    ),
    Digits,
]


@router.get(
    "/signal",
    operation_id="get_signal",
    summary="Signal and noise of each metric, and what early scores decide",
    response_model=SignalCard,
    response_description="The card; with `Accept: text/csv` all its metrics as CSV.",
    responses=_RESPONSES,
)
def get_signal(
    name: DatasetReference,
    service: Service,
    accept: Accept = None,
    split: Split = None,
    target: Annotated[
        RankedName,
        Query(
            max_length=200,
            description="A metric that has a direction: early scores should tell the order of its "
            "final ones.",
        ),
    ] = USUAL_METRIC,
    last: Annotated[
        int,
        Query(ge=2, le=100, description="Last checkpoints of a training that make its noise."),
        Digits,
    ] = 5,
    average: _Average = 1,
    limit: Annotated[
        int,
        Query(
            ge=0,
            le=1000,
            description="Pre-gen metrics with the highest ratio of signal to noise, besides the "
            "headline ones.",
        ),
        Digits,
    ] = 20,
) -> Response | SignalCard:
    """Each metric by evaluations with the labels `run` and `step`: how far apart it sees trainings,
    how much it differs between checkpoints, seeds and images of one, and how often the order of
    two trainings at 5, 10, 25 and 50 % of their steps is their order at the end. This computes no
    scores.
    """
    check_known_metrics([target], "target")
    asked = SignalQuery(name, split, target, last, average, limit)
    if responses.wants_csv(accept):
        return responses.answer_csv(signal_cards.build_signal_table(service, asked))
    return signal_cards.build_signal_card(service, asked)


@router.get(
    "/ranking",
    operation_id="get_ranking",
    summary="Rank a sweep's runs before they have ended",
    response_model=SweepRanking,
    response_description="The runs; with `Accept: text/csv` as CSV.",
    responses=_RESPONSES,
    openapi_extra={"parameters": [openapi.LABELS]},
)
def get_ranking(
    name: DatasetReference,
    request: Request,
    service: Service,
    accept: Accept = None,
    split: Split = None,
    target: Annotated[
        RankedName,
        Query(
            max_length=200,
            description="A metric that has a direction: the best final score of it decides.",
        ),
    ] = USUAL_METRIC,
    at: Annotated[
        float | None,
        Query(
            gt=0,
            le=100,
            description="Percent of each run's steps up to which scores count. By default what all "
            "runs that have not ended have reached.",
        ),
    ] = None,
    steps: Annotated[
        int | None,
        Query(
            ge=1,
            le=10**15,
            description="The last step of each run. By default its label `steps`; without it the "
            "most usual end of past trainings.",
        ),
        Digits,
    ] = None,
    sure: Annotated[
        float,
        Query(ge=0.5, le=0.999, description="The least probability that the best run is kept."),
    ] = 0.95,
    average: _Average = 1,
) -> Response | SweepRanking:
    """Tells which of the runs with these labels can be stopped, and the probability that the best
    one is among the others: by evaluations with the labels `run` and `step`, and by trainings on
    the split that have ended. This computes no scores and stops nothing.
    """
    check_known_metrics([target], "target")
    wanted = run_lists.read_label_filters(request.query_params.multi_items())
    asked = RankingQuery(name, split, target, wanted, at, steps, sure, average)
    if responses.wants_csv(accept):
        return responses.answer_csv(sweep_rankings.build_ranking_table(service, asked))
    return sweep_rankings.rank_sweep(service, asked)
