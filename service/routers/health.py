"""/livez, /readyz and /metrics: for load balancers and Prometheus."""

import redis
import sqlalchemy as sa
from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from service.contract.errors import Overloaded
from service.dependencies import Service

router = APIRouter(tags=["health"])


@router.get("/livez")
def livez() -> dict[str, str]:
    return {"status": "ok"}


@router.get("/readyz")
def readyz(service: Service) -> dict[str, str]:
    """200 when database and Redis answer."""
    try:
        with service.records.reading() as connection:
            connection.execute(sa.text("SELECT 1"))
        service.queues.connection.ping()
    except (sa.exc.SQLAlchemyError, redis.RedisError, OSError) as error:
        raise Overloaded(f"not ready: {type(error).__name__}") from None
    return {"status": "ok"}


@router.get("/metrics", include_in_schema=False)
def metrics() -> Response:
    return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)
