"""The numbers at /metrics for Prometheus. What each says stands in `deploy/README.md`, too."""

from pathlib import Path

from prometheus_client import CollectorRegistry, Histogram, ProcessCollector

from service.engine.records import Records
from service.engine.task_queue import WakeUpQueue
from service.http.telemetry.counts import Counts

METHODS = ("GET", "HEAD", "PUT", "POST", "PATCH", "DELETE")
_SECONDS = (0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0)


class Telemetry:
    """The numbers of one application, in a registry of its own: a process may have two. `home`: the
    folder whose disk is looked at, if there is one.
    """

    def __init__(self, records: Records, queue: WakeUpQueue, home: Path | None = None) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(Counts(records, queue, home))
        ProcessCollector(registry=self.registry)
        self._requests = Histogram(
            "prescore_request_seconds",
            "Requests by method, route and status.",
            ("method", "route", "status"),
            buckets=_SECONDS,
            registry=self.registry,
        )

    def request(self, method: str, route: str, status: int | None, seconds: float) -> None:
        """Count a request; `status` is None if the connection ended before the answer."""
        known = method if method in METHODS else "other"  # a client may send any text
        self._requests.labels(known, route, str(status)).observe(seconds)
