"""/v1/metrics: the catalogue of metrics; /v1/learned/{id}/model: models of trained ones."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Response

from prescore.models.metrics import Metric, MetricPage
from service.contract import assets, errors
from service.contract.api.field_types import MOST_DEFINITIONS, DefinitionNames
from service.contract.formats.strict_json import replace_infinite
from service.contract.metrics import catalogue
from service.contract.metrics.catalogue import METRICS, POSTGEN, MetricSpec
from service.http import openapi
from service.http.dependencies import Service
from service.http.routers.request_parameters import TrainingIdentity, read_metric_names
from service.http.service_route import ServiceRoute
from service.runs import training

router = APIRouter(prefix="/v1/metrics", tags=["metrics"], route_class=ServiceRoute)


@router.get(
    "",
    operation_id="list_metrics",
    summary="List the metrics",
    responses=openapi.describe_refusals(errors.UnknownMetric),
)
def list_metrics(
    service: Service,
    names: Annotated[
        DefinitionNames | None,
        Query(
            max_length=5000,
            description="Only these metrics: names, separated by commas.",
            examples=["cider_d,meteor"],
        ),
    ] = None,
) -> MetricPage:
    """Name, direction, range and definition of each metric, and whether it can be computed here;
    metrics that were trained here come last.
    """
    reasons = {name: assets.explain_missing(name, service.places) for name in POSTGEN}
    items = [_out(spec, reasons.get(spec.name)) for spec in METRICS.values()]
    for name, origin in training.list_known_models(service).items():
        spec = catalogue.find_metric(catalogue.name_learned_metric(*name))
        definition = f"{spec.definition} This one was {origin}."
        items.append(_out(replace(spec, definition=definition), None))
    if names is not None:
        asked = read_metric_names(names, "names", MOST_DEFINITIONS)
        wanted = {catalogue.find_metric(name).name for name in asked}
        items = [item for item in items if item.name in wanted]
    return MetricPage(items=items, next=None)


def _out(spec: MetricSpec, reason: str | None) -> Metric:
    return Metric(
        name=spec.name,
        family=spec.family,
        higher_is_better=spec.higher_is_better,
        range=replace_infinite(spec.range),
        definition=spec.definition,
        needs=list(spec.needs),
        status="available" if reason is None else "unavailable",
        reason=reason,
    )


models_router = APIRouter(prefix="/v1/learned", tags=["learned"], route_class=ServiceRoute)
_FILE = "application/octet-stream"


@models_router.get(
    "/{id}/model",
    operation_id="get_model",
    summary="Download the model of a metric",
    response_class=Response,
    responses={
        200: {
            "description": "A safetensors file, which `prescore assets add learned` accepts.",
            "content": {_FILE: {"schema": {"type": "string", "format": "binary"}}},
        },
        **openapi.describe_refusals(*openapi.STORED, errors.Conflict),
    },
)
def get_model(id: TrainingIdentity, service: Service) -> Response:
    """The model, to score captions on another machine."""
    path = training.find_model(service, id)
    return Response(path.read_bytes(), media_type=_FILE)
