"""/v1/metrics: the catalogue of metrics, and which of them can be computed here."""

from dataclasses import replace

from fastapi import APIRouter

from prescore.models.metrics import Metric, MetricPage
from service.contract import assets
from service.contract.formats.strict_json import replace_infinite
from service.contract.metrics import catalogue
from service.contract.metrics.catalogue import METRICS, POSTGEN, MetricSpec
from service.http import openapi
from service.http.dependencies import Service
from service.http.entrance.access import ScopedRoute
from service.runs import training

router = APIRouter(prefix="/v1/metrics", tags=["metrics"], route_class=ScopedRoute)


@router.get(
    "",
    operation_id="list_metrics",
    summary="List the metrics",
    responses=openapi.refusals(),
)
def every(service: Service) -> MetricPage:
    """Name, direction, range and definition of each metric, and whether it can be computed here;
    metrics that were trained here come last.
    """
    reasons = {name: assets.explain_missing(name, service.places) for name in POSTGEN}
    items = [_out(spec, reasons.get(spec.name)) for spec in METRICS.values()]
    for name, origin in training.known(service).items():
        spec = catalogue.find_metric(catalogue.name_learned_metric(*name))
        definition = f"{spec.definition} This one was {origin}."
        items.append(_out(replace(spec, definition=definition), None))
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
