"""/v1/metrics: what can be computed here, and what it means."""

import math

from fastapi import APIRouter

from service.contract.catalogue import METRICS
from service.contract.schemas import MetricOut, Page

router = APIRouter(prefix="/v1/metrics", tags=["metrics"])


@router.get("")
def every() -> Page:
    items = [
        MetricOut(
            name=spec.name,
            family=spec.family,
            higher_is_better=spec.higher_is_better,
            range=(_finite(spec.range[0]), _finite(spec.range[1])),
            definition=spec.definition,
            needs=list(spec.needs),
            status="available",
            reason=None,
        )
        for spec in METRICS.values()
    ]
    return Page(items=items, next=None)


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None
