"""/v1/metrics: what can be computed here, and what it means."""

import math

from fastapi import APIRouter

from service.contract import assets
from service.contract.catalogue import METRICS, POSTGEN
from service.contract.schemas import MetricOut, MetricPage
from service.dependencies import Service

router = APIRouter(prefix="/v1/metrics", tags=["metrics"])


@router.get("", operation_id="list_metrics", summary="List the metrics")
def every(service: Service) -> MetricPage:
    """Name, direction, range and definition of each, and whether it can be computed here."""
    reasons = {name: assets.missing(name, service.places) for name in POSTGEN}
    items = [
        MetricOut(
            name=spec.name,
            family=spec.family,
            higher_is_better=spec.higher_is_better,
            range=(_finite(spec.range[0]), _finite(spec.range[1])),
            definition=spec.definition,
            needs=list(spec.needs),
            status="unavailable" if reasons.get(spec.name) else "available",
            reason=reasons.get(spec.name),
        )
        for spec in METRICS.values()
    ]
    return MetricPage(items=items, next=None)


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None
