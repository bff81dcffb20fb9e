"""Performs works in the calling process, with the rules of a worker.

For tests of rules and routes, which need scores and no second process. Nothing is killed here: a
work that is late or too large fails only when it is done.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.works import presence
from service.works.blobs import Blobs
from service.works.queueing import AtOnce
from service.works.records import Records
from service.works.tracing.spans import OFF, Tracer
from workers import jobs
from workers.jobs.toolbox import Toolbox
from workers.runtime.resident import Answer, Cause, Ended
from workers.runtime.runner import Runner
from workers.runtime.workplace import Workplace


class InProcess:
    """A `Warm` without a process: `receive` computes the request that was sent."""

    peak_bytes = 0
    last_output = ""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._request: Mapping[str, Any] = {}

    def send(self, request: Mapping[str, Any]) -> None:
        self._request = request

    def receive(self, seconds: float) -> Answer:  # noqa: ARG002  the protocol's
        return Answer(jobs.answer(self._request, self._toolbox))

    def memory(self) -> int:
        return 0

    def end(self) -> Ended:
        return Ended("the works are performed in this process", Cause.OWN)

    def close(self) -> None:
        """Nothing to close: the toolbox belongs to the caller."""


def queue(
    records: Records, blobs: Blobs, folder: Path, toolbox: Toolbox, tracer: Tracer = OFF
) -> AtOnce:
    """A queue that performs works itself; `tracer` is told of the attempts."""

    def perform(queue: str) -> None:
        runner.run_first(queue)

    at_once = AtOnce(perform)
    workplace = Workplace(blobs, folder)
    name = presence.name("in-process")
    runner = Runner(records, at_once, workplace, name, lambda: InProcess(toolbox), tracer=tracer)
    return at_once
