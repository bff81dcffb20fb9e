"""The RQ worker: takes wake-ups from the queues of its role. For each, the runner performs the task
of that queue whose turn it is.

Of a wake-up only the key is read, and only to see that it has the form of a task's key: a job's
data, its function and its callbacks stay where they are, whether they are there or not. Other
entries are counted and dropped. Nothing that lies in Redis, or is missing from it, ends a worker;
only a signal does.
"""

import contextlib
import signal
import time
from types import FrameType
from typing import Any

import redis
import structlog
from rq import Queue
from rq.serializers import JSONSerializer
from rq.worker import BaseWorker
from rq.worker_registration import clean_worker_registry

from service.contract.assets import AssetFolders
from service.contract.plan.tasks import QUEUES
from service.contract.settings import Settings
from service.engine import database, fleet_status, presence, task_expiry, task_queue
from service.engine.blobs import open_blobs
from service.engine.records import Records
from service.engine.task_queue import RedisQueue
from service.engine.tracing.spans import OFF, Tracer
from workers.inference.plugins import registry
from workers.runtime import attempt_files, short_tasks
from workers.runtime.attempt_files import AttemptFiles
from workers.runtime.child_services import ChildServices, ServiceSettings
from workers.runtime.memory_share import MemoryShare
from workers.runtime.runner import TaskRunner
from workers.runtime.short_tasks import ShortTaskRunner, ShortTasks
from workers.runtime.warm_child import ChildFiles, WarmChild

log = structlog.get_logger()

WAIT_SECONDS = 5.0  # for a wake-up; then the worker tells Redis again that it lives
_ANSWER_SECONDS = 5.0  # more, and the connection counts as cut
_PAUSE_SECONDS = 1.0  # after a failure
_FORCE_SECONDS = 1.0  # signals that follow the first one sooner are the same request


class _StopSignal(BaseException):
    """A signal has come while the worker was waiting."""


class QueueWorker(BaseWorker):
    """Registered as RQ's own workers are, so that RQ's commands show it. It has a loop of its own:
    RQ's loads each job, and ends when one cannot be loaded.
    """

    def __init__(
        self,
        runner: TaskRunner,
        ours: RedisQueue,
        role: str,
        connection: redis.Redis,
        beside: ShortTasks,
    ) -> None:
        queues = [
            Queue(name, connection=connection, serializer=JSONSerializer) for name in QUEUES[role]
        ]
        super().__init__(queues, name=runner.name, connection=connection, serializer=JSONSerializer)
        self._runner = runner
        self._beside = beside
        self._ours = ours
        self._order = self.queue_keys()  # in which a wake-up is looked for
        self._busy = False
        self._asked: float | None = None  # when a signal has asked to stop

    @property
    def connection_timeout(self) -> int:
        return int(WAIT_SECONDS + _ANSWER_SECONDS)

    def listen(self) -> None:
        """Perform tasks until SIGTERM or SIGINT."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._on_signal)
        try:
            while self._asked is None:
                self._turn()
        except _StopSignal:
            log.info("stopping")
        finally:
            with contextlib.suppress(redis.RedisError, OSError):
                self.register_death()  # type: ignore[no-untyped-call]

    def announce(self) -> None:
        """Tell Redis that this worker lives, and forget those that do not."""
        if self.connection.exists(self.key):
            self.heartbeat()
            return
        self.register_birth()  # type: ignore[no-untyped-call]
        for queue in self.queues:
            clean_worker_registry(queue)

    def _turn(self) -> None:
        try:
            found = self._next()
        except (redis.RedisError, OSError) as error:
            log.warning("redis is away", error=type(error).__name__, detail=str(error))
            time.sleep(_PAUSE_SECONDS)
            return
        if found is None:
            self._beside.rest()
            self._runner.rest()
            return
        self._busy = True  # from here on, a signal asks to stop and does not interrupt
        try:
            self._perform(*found)
        except Exception:
            log.exception("a task could not be begun or ended; the worker goes on")
            time.sleep(_PAUSE_SECONDS)
        finally:
            self._busy = False

    def _next(self) -> tuple[bytes, str] | None:
        """The next wake-up: its entry, and the name of its queue."""
        with contextlib.suppress(redis.ResponseError):  # only RQ's commands look at this
            self.announce()
        try:
            found: Any = self.connection.blpop(self._order, timeout=WAIT_SECONDS)
        except redis.ResponseError:
            self._ours.drop_what_is_no_queue()
            raise
        if found is None:
            return None
        queue, entry = found
        if queue.decode() != self._order[0]:  # the next time, the others come before it
            self._order.remove(queue.decode())
            self._order.append(queue.decode())
        return entry, queue.decode().removeprefix(Queue.redis_queue_namespace_prefix)

    def _perform(self, entry: bytes, queue: str) -> None:
        """Perform a task of this queue, if this is a wake-up of ours."""
        if self._ours.is_wake_up(entry):
            self._runner.run_first(queue)
        else:
            log.warning("not ours", queue=queue, job=entry.decode(errors="replace")[:100])

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        now = time.monotonic()
        self._runner.ask_to_stop()
        self._beside.ask_to_stop()
        if self._asked is None:
            self._asked = now
            if not self._busy:
                raise _StopSignal
        elif now - self._asked > _FORCE_SECONDS:
            raise SystemExit


def run_worker(role: str, settings: Settings, tracer: Tracer = OFF) -> None:
    """Run a worker until SIGTERM or SIGINT; `tracer` is told of its attempts."""
    engine = database.open_database(settings.database)
    database.check_revision(engine)
    # The worker waits on this connection for wake-ups.
    name = presence.name_worker(role)
    connection = task_queue.connect_redis(settings.redis, WAIT_SECONDS + _ANSWER_SECONDS, name)
    task_queue.check_eviction(connection)
    blobs = open_blobs(settings.blob_url, settings.home)
    folder = settings.home / "attempts"
    attempt_files.sweep_attempts(folder)
    files, files_beside = (AttemptFiles(blobs, folder) for _ in range(2))
    records, ours = Records(engine), RedisQueue(task_queue.connect_redis(settings.redis))

    def start(purpose: str, own: AttemptFiles) -> WarmChild:
        reached = ChildFiles(own.inputs, own.work, AssetFolders.of(settings))
        services = ChildServices(ServiceSettings.of(settings))
        return WarmChild(purpose, _child_settings(settings), reached, services)

    limit, together = settings.task_memory, settings.tasks_memory

    def share_memory(most: int, purpose: str) -> MemoryShare:
        return MemoryShare(most, together, settings.home / "memory", f"{name}-{purpose}")

    short = ShortTaskRunner(
        records,
        ours,
        files_beside,
        name,
        lambda: start(f"{role}-short", files_beside),
        share_memory(limit // short_tasks.SHARE, "short"),
        tracer=tracer,
    )
    second = ShortTasks(short, records, ours, QUEUES[role])
    memory = share_memory(limit, "tasks")
    runner = TaskRunner(
        records, ours, files, name, lambda: start(role, files), memory, second.look, tracer
    )
    runner.warm_up()
    try:
        with presence.stay_present(settings.home, name):
            # What the one before this had begun comes before what has not been begun.
            task_expiry.end_leases_of_dead_workers(records, settings.home)
            if role == "inference":
                record_plugins(records)
            ours.flush(records)
            QueueWorker(runner, ours, role, connection, second).listen()
    finally:
        second.close()
        runner.close()
        tracer.close()


def record_plugins(records: Records) -> None:
    """Tell the service which plug-ins are installed here."""
    found = registry.find_plugins()
    for name, problem in found.wrong.items():
        log.warning("a plug-in that cannot be used", name=name, problem=problem)
    fleet_status.store_plugins(records, found.usable.values())


def _child_settings(settings: Settings) -> dict[str, str]:
    """The warm child's environment: no URLs and no keys."""
    found = {
        "PRESCORE_DEVICE": settings.device,
        "PRESCORE_HOME": str(settings.home),
        "PRESCORE_MODEL_TYPES": settings.model_types,
        "PRESCORE_SANDBOX": settings.sandbox,
        "PRESCORE_TASK_MEMORY": str(settings.task_memory),
    }
    if settings.assets is not None:
        found["PRESCORE_ASSETS"] = str(settings.assets)
    return found
