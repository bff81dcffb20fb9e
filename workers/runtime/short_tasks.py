"""Short tasks that a worker performs beside a long one, in a second child.

Nothing cuts a block of a long search, or METEOR of 100,000 captions; without a second child, the
first scores of others wait until they end. It is started where a short task is ready while another
has been running for a second, and ends when the worker has nothing to do.
"""

import time
from collections.abc import Sequence
from concurrent import futures

import structlog

from service.engine import leases, turns
from service.engine.leases import Lease
from service.engine.records import Records
from service.engine.task_queue import RedisQueue
from workers.runtime.attempt_files import run_in_background
from workers.runtime.memory_share import MemoryExcess
from workers.runtime.runner import BEAT_SECONDS, TaskRunner
from workers.runtime.warm_child import TaskExecutor

log = structlog.get_logger()

SHARE = 3  # the second child may take a third of a task's memory
# Seconds of the processor that a task may take which should take at most four: where Java is cold,
# METEOR reads its table for 10 to 20. Beside others it takes up to twice as long by the clock.
MOST_SECONDS = 30.0
_MOST_BESIDE = 2
_CLOSING_SECONDS = 5.0  # for what runs to be handed back


class ShortTaskRunner(TaskRunner):
    """Hands back a task that takes more time or memory than a short one may; that task is then
    performed as the long ones are.
    """

    _spent_before = 0.0  # by the child, on earlier tasks

    def compute(self, lease: Lease, child: TaskExecutor) -> None:
        self._spent_before = child.processor_seconds()
        super().compute(lease, child)

    def is_over(self, lease: Lease, child: TaskExecutor) -> bool:
        passed = time.monotonic() - self._begun
        spent = child.processor_seconds() - self._spent_before
        if spent > MOST_SECONDS or passed > _MOST_BESIDE * MOST_SECONDS:
            self.kill()
            self._hand_back(lease, child.peak_bytes)
            return True
        return super().is_over(lease, child)

    def end_as_too_large(self, lease: Lease, excess: MemoryExcess, peak: int) -> None:  # noqa: ARG002
        self._hand_back(lease, peak)

    def _hand_back(self, lease: Lease, took: int) -> None:
        log.warning("not short", kind=lease.kind, key=lease.key, bytes=took)
        leases.hand_back_task(self._records, lease, is_long=True)
        self.tell("not short")


class ShortTasks:
    def __init__(
        self, runner: ShortTaskRunner, records: Records, ours: RedisQueue, queues: Sequence[str]
    ) -> None:
        self._runner = runner
        self._records = records
        self._ours = ours
        self._queues = queues
        self._running: futures.Future[None] | None = None
        self._until = 0.0

    def look(self) -> None:
        """Begin the short tasks that are ready, unless some are being performed. To be called each
        second of a long task.
        """
        self._until = time.monotonic() + 2 * BEAT_SECONDS
        if not self._is_running() and self._is_one_ready():
            self._running = run_in_background(self._perform)

    def rest(self) -> None:
        """End the second child, unless it is at work."""
        if not self._is_running():
            self._runner.close()

    def ask_to_stop(self) -> None:
        self._until = 0.0
        self._runner.ask_to_stop()

    def close(self) -> None:
        """Wait for what runs, which is handed back, and end the second child."""
        self.ask_to_stop()
        if self._running is not None:
            futures.wait([self._running], _CLOSING_SECONDS)
        self._runner.close()

    def _is_running(self) -> bool:
        return self._running is not None and not self._running.done()

    def _is_one_ready(self) -> bool:
        with self._records.reading() as connection:
            return any(
                turns.find_first_task(connection, queue, short=True) for queue in self._queues
            )

    def _perform(self) -> None:
        """Perform short tasks, as long as any is ready and a long one runs."""
        try:
            while time.monotonic() < self._until and any(map(self._perform_one, self._queues)):
                pass
        except Exception:
            log.exception("a short task could not be begun or ended")

    def _perform_one(self, queue: str) -> bool:
        found = self._runner.run_first(queue, short=True)
        if found:
            self._ours.take_wake_up(queue)
        return found
