"""A fake of a worker's warm child: deaths and delays of a real one are not to be had at will."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workers.runtime.warm_child import ChildAnswer, ChildExit, ExitCause


class FakeExecutor:
    """`receive` gets this fake and the seconds; `held` are the bytes that it takes."""

    peak_bytes = 0

    def __init__(
        self,
        receive: Callable[["FakeExecutor", float], ChildAnswer | None],
        held: int = 0,
        last_output: str = "",
    ) -> None:
        self.last_output = last_output
        self.result: Path | None = None  # of the task that it has
        self.was_ended = False
        self._receive = receive
        self._held = held

    def send(self, request: dict[str, Any]) -> None:
        self.result = Path(request["result"])

    def receive(self, seconds: float) -> ChildAnswer | None:
        return self._receive(self, seconds)

    def is_outdated(self) -> bool:
        return False

    def memory(self) -> int:
        return self._held

    def processor_seconds(self) -> float:
        return time.monotonic()  # it computes all the time

    def end(self) -> ChildExit:
        self.was_ended = True
        return ChildExit(f"it was ended {self.last_output}", ExitCause.OUTSIDE)

    def close(self) -> None:
        """Nothing to close."""
