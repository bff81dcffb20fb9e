"""The RQ worker: takes wake-ups from the queues of its role and gives their keys to the runner.

Only a job's id is used, and only if it has the form of a work's key: its data is never loaded, its
function never looked up, its callbacks never called. Other entries in the queues are counted and
dropped.
"""

import re
from types import FrameType

import redis
import structlog
from rq import Queue
from rq.job import Job
from rq.serializers import JSONSerializer
from rq.worker import BaseWorker, WorkerStatus

from service.contract.plan.works import QUEUES
from service.contract.settings import Settings
from service.works import database, queueing
from service.works.blobs import open_blobs
from service.works.queueing import RedisQueue
from service.works.records import Records
from workers.runtime.resident import WarmChild
from workers.runtime.runner import Limits, Runner
from workers.runtime.workplace import Workplace

log = structlog.get_logger()

_KEY = re.compile(r"[0-9a-f]{64}")


class QueueWorker(BaseWorker):
    def __init__(
        self, runner: Runner, ours: RedisQueue, role: str, connection: redis.Redis
    ) -> None:
        queues = [
            Queue(name, connection=connection, serializer=JSONSerializer) for name in QUEUES[role]
        ]
        super().__init__(
            queues,
            connection=connection,
            serializer=JSONSerializer,
            log_job_description=False,  # it would load the job's data
        )
        self._runner = runner
        self._ours = ours

    def execute_job(self, job: Job, queue: Queue) -> None:
        """Run the work whose key is the job's id; all else about the work is in the database."""
        # From here on, a signal asks to stop and does not interrupt.
        self.set_state(WorkerStatus.BUSY)
        identity = job.id
        job.delete(remove_from_queue=False)
        if not _KEY.fullmatch(identity):
            self._ours.note_foreign()
            log.warning("not ours", queue=queue.name, job=identity[:100])
            return
        self._runner.run(identity)
        self.set_state(WorkerStatus.IDLE)

    def request_stop(self, signum: int, frame: FrameType | None) -> None:
        self._runner.ask_to_stop()
        super().request_stop(signum, frame)  # type: ignore[no-untyped-call]


def serve(role: str, settings: Settings) -> None:
    """Run a worker until SIGTERM or SIGINT."""
    engine = database.connect(settings.database)
    database.check_at_head(engine)
    # RQ waits on this connection for work.
    connection = queueing.connect(settings.redis, timeout=30)
    queueing.check(connection)
    workplace = Workplace(open_blobs(settings.blob_url, settings.home), settings.home / "attempts")
    workplace.sweep()
    ours = RedisQueue(queueing.connect(settings.redis))
    runner = Runner(
        Records(engine),
        ours,
        workplace,
        role,
        lambda: WarmChild(role, _child_settings(settings)),
        Limits(settings.work_memory),
    )
    runner.warm_up()
    try:
        QueueWorker(runner, ours, role, connection).work(logging_level="WARNING")
    finally:
        runner.close()


def _child_settings(settings: Settings) -> dict[str, str]:
    """The warm child's environment: no URLs and no keys."""
    found = {
        "PRESCORE_DEVICE": settings.device,
        "PRESCORE_HOME": str(settings.home),
        "PRESCORE_WORK_MEMORY": str(settings.work_memory),
    }
    if settings.assets is not None:
        found["PRESCORE_ASSETS"] = str(settings.assets)
    return found
