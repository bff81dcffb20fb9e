"""Works performed in the process that asks for them, with the worker's own rules.

For tests of rules and routes, which need scores and no second process. Nothing here is killed: a
work that is late, or too large, is told when it is done.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from service.works.blobs import Blobs
from service.works.queueing import AtOnce
from service.works.records import Records
from workers import jobs
from workers.jobs.toolbox import Toolbox
from workers.runtime.resident import Answer
from workers.runtime.runner import Runner
from workers.runtime.workplace import Workplace


class InProcess:
    """In place of a child: it answers what it was sent as soon as it is asked for the answer."""

    peak_bytes = 0
    last_output = ""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox
        self._request: Mapping[str, Any] = {}

    def send(self, request: Mapping[str, Any]) -> None:
        self._request = request

    def receive(self, seconds: float) -> Answer:  # noqa: ARG002  as a child does
        return Answer(jobs.answer(self._request, self._toolbox))

    def memory(self) -> int:
        return 0

    def end(self) -> str:
        return "the works are performed in this process"

    def close(self) -> None:
        """It keeps nothing but the toolbox, which is its caller's."""


def queue(records: Records, blobs: Blobs, folder: Path, toolbox: Toolbox) -> AtOnce:
    """A queue that is its own worker."""

    def perform(key: str) -> None:
        runner.run(key)

    at_once = AtOnce(perform)
    workplace = Workplace(blobs, folder)
    runner = Runner(records, at_once, workplace, "in-process", lambda: InProcess(toolbox))
    return at_once
