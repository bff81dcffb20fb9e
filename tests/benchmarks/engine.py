"""The engine's speed: tasks that do nothing, by some workers, beside plain RQ and procrastinate.

    PYTHONPATH=. python tests/benchmarks/engine.py [--workers 1,4,16] [--tasks 400]

Needs PostgreSQL (PRESCORE_TEST_POSTGRES); Redis is started for this. All of a table is of one run
on one machine: read the ratios. CPU is of the workers' processes; statements, transactions and
commands are those that the servers have counted or the workers sent, for one task.
"""

import argparse
import contextlib
import importlib.util
import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import redis
import sqlalchemy as sa
import structlog

from helpers import outside
from helpers.redis_server import Server

ROOT = Path(__file__).resolve().parents[2]
QUEUE = "metrics"
BEATS_SECONDS = 5.0
SLOW_SECONDS = 0.08  # of each statement of a worker whose link is slow
PATIENCE = 300.0
COLUMNS = (
    *("workers", "tasks/s", "CPU, ms", "statements", "transactions", "Redis commands"),
    "p99 of statements, ms",
)


@dataclass(frozen=True)
class Places:
    """Servers of a run, and the folder of its files."""

    database: str
    redis: str
    folder: Path

    @property
    def dsn(self) -> str:
        return self.database.replace("+psycopg", "")


# --- The processes that work


class _Counts:
    """Statements of this process, and how long each took."""

    def __init__(self, engine: sa.Engine, delay: float) -> None:
        self.seconds: list[float] = []
        sa.event.listen(engine, "before_cursor_execute", self._begin)
        sa.event.listen(engine, "after_cursor_execute", self._end)
        self._delay = delay
        self._began = 0.0

    def _begin(self, *_: Any) -> None:
        if self._delay:
            time.sleep(self._delay)
        self._began = time.monotonic()

    def _end(self, *_: Any) -> None:
        self.seconds.append(time.monotonic() - self._began)


def work_ours(places: Places, number: int, delay: float) -> dict[str, Any]:
    """Perform tasks as `prescore worker` does, by a child that answers at once."""
    from helpers.executors import FakeExecutor
    from service.engine import database, task_queue
    from service.engine.blobs import open_blobs
    from service.engine.records import Records
    from service.engine.task_queue import RedisQueue
    from workers.runtime.attempt_files import AttemptFiles
    from workers.runtime.runner import TaskRunner
    from workers.runtime.warm_child import ChildAnswer

    def receive(child: FakeExecutor, _: float) -> ChildAnswer:
        assert child.result is not None
        child.result.write_bytes(b"{}")
        return ChildAnswer({"summary": {}})

    quiet = structlog.make_filtering_bound_logger(logging.ERROR)
    structlog.configure(wrapper_class=quiet)
    engine = database.open_database(places.database)
    counts = _Counts(engine, delay)
    queue = RedisQueue(task_queue.connect_redis(places.redis))
    blobs = open_blobs(None, places.folder / str(number))
    files = AttemptFiles(blobs, places.folder / str(number) / "attempts")
    runner = TaskRunner(Records(engine), queue, files, f"w{number}", lambda: FakeExecutor(receive))
    waking = redis.Redis.from_url(places.redis)
    done = 0
    _await_start(waking)
    began = time.process_time()
    while waking.blpop(f"rq:queue:{QUEUE}", timeout=1):
        done += runner.run_first(QUEUE)
    return {"done": done, "cpu": time.process_time() - began, "statements": counts.seconds}


def beat_ours(places: Places, number: int, _: float) -> dict[str, Any]:
    """Extend a lease again and again."""
    from service.engine import database, leases
    from service.engine.records import Records

    engine = database.open_database(places.database)
    counts, records = _Counts(engine, 0.0), Records(engine)
    lease = leases.lease_first_task(records, QUEUE, f"w{number}")
    assert lease is not None
    _await_start(redis.Redis.from_url(places.redis))
    began, until, done = time.process_time(), time.monotonic() + BEATS_SECONDS, 0
    while time.monotonic() < until:
        assert leases.extend_lease(records, lease)
        done += 1
    return {"done": done, "cpu": time.process_time() - began, "statements": counts.seconds}


def do_nothing() -> None:
    """What plain RQ performs."""


def work_rq(places: Places, *_: Any) -> dict[str, Any]:
    from rq import Queue, SimpleWorker

    connection = redis.Redis.from_url(places.redis)
    worker = SimpleWorker([Queue(connection=connection)], connection=connection)
    _await_start(connection)
    began = time.process_time()
    worker.work(burst=True, logging_level="ERROR")
    done = worker.successful_job_count
    return {"done": done, "cpu": time.process_time() - began, "statements": []}


def work_procrastinate(places: Places, *_: Any) -> dict[str, Any]:
    app = open_procrastinate(places)
    _await_start(redis.Redis.from_url(places.redis))
    began = time.process_time()
    app.run_worker(wait=False, install_signal_handlers=False, delete_jobs="never")
    return {"done": 0, "cpu": time.process_time() - began, "statements": []}


def open_procrastinate(places: Places) -> Any:
    import procrastinate

    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=places.dsn))
    app.task(name="nothing")(do_nothing)
    return app


WORKS = {"ours": work_ours, "beats": beat_ours, "rq": work_rq, "procrastinate": work_procrastinate}


def _await_start(connection: redis.Redis) -> None:
    connection.incr("ready")
    while not connection.exists("start"):
        time.sleep(0.01)


# --- What is measured


def run_workers(
    places: Places, what: str, many: int, delays: Sequence[float] = ()
) -> tuple[float, list[dict[str, Any]]]:
    """Seconds from the start until all have ended, and what each tells."""
    server = redis.Redis.from_url(places.redis)
    server.delete("ready", "start")
    started = []
    for number in range(many):
        delay = delays[number] if number < len(delays) else 0.0
        given = json.dumps([what, places.database, places.redis, str(places.folder), number, delay])
        command = [sys.executable, __file__, "--worker", given]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True))
    until = time.monotonic() + PATIENCE
    while int(server.get("ready") or 0) < many:
        assert time.monotonic() < until, "workers that start"
        time.sleep(0.02)
    began = time.monotonic()
    server.set("start", 1)
    told = [json.loads(each.communicate(timeout=PATIENCE)[0]) for each in started]
    return time.monotonic() - began, told


def add_tasks(places: Places, many: int) -> None:
    from service.contract.plan.tasks import Task
    from service.engine import database, intake, task_queue
    from service.engine.records import Records
    from service.engine.task_queue import RedisQueue

    engine = database.open_database(places.database)
    database.migrate_database(engine)
    records = Records(engine)
    mark = time.time_ns()
    tasks = [Task("look", {}, {"number": mark + number}, price=0.01) for number in range(many)]
    with records.transaction() as connection:
        intake.add_tasks(records, connection, tasks, 1e12)
    RedisQueue(task_queue.connect_redis(places.redis)).flush(records)
    engine.dispose()


def count_transactions(places: Places) -> int:
    query = "SELECT pg_stat_force_next_flush(), xact_commit + xact_rollback FROM pg_stat_database"
    engine = sa.create_engine(places.database.replace("postgresql:", "postgresql+psycopg:", 1))
    with engine.connect() as connection:
        row = connection.execute(sa.text(f"{query} WHERE datname = current_database()")).one()
    engine.dispose()
    return int(row[1])


def measure(places: Places, what: str, workers: int, tasks: int) -> str:
    server = redis.Redis.from_url(places.redis)
    before = count_transactions(places)
    commands = server.info("stats")["total_commands_processed"]
    seconds, told = run_workers(places, what, workers)
    seconds -= 1.0 if what == "ours" else 0.0  # the last look at an empty queue
    commands = server.info("stats")["total_commands_processed"] - commands
    transactions = count_transactions(places) - before
    cpu = sum(each["cpu"] for each in told)
    took = sorted(second for each in told for second in each["statements"])
    late = f"{1000 * took[int(0.99 * len(took))]:.0f}" if took else ""
    cells = [
        f"{what}, {workers}", f"{tasks / seconds:.0f}", f"{1000 * cpu / tasks:.1f}",
        f"{len(took) / tasks:.1f}" if took else "", f"{transactions / tasks:.1f}",
        f"{commands / tasks:.1f}", late,
    ]  # fmt: skip
    return f"| {' | '.join(cells)} |"


def measure_beats(places: Places, many: int) -> str:
    add_tasks(places, many)
    _, told = run_workers(places, "beats", many)
    rate = sum(each["done"] for each in told) / BEATS_SECONDS
    cpu = sum(each["cpu"] for each in told) / sum(each["done"] for each in told)
    return f"beats of {many} workers: {rate:.0f} a second, {1000 * cpu:.1f} ms of CPU each"


def measure_slow_link(places: Places, tasks: int, many: int = 8) -> str:
    """How much others are slowed by one worker each of whose statements takes 80 ms more."""
    rates = []
    for delays in ((), (SLOW_SECONDS,)):
        add_tasks(places, tasks)
        seconds, told = run_workers(places, "ours", many, delays)
        rates.append(sum(each["done"] for each in told[1:]) / (seconds - 1.0))
    others = f"others {rates[0]:.0f} -> {rates[1]:.0f} a second"
    return f"one of {many} with {SLOW_SECONDS:g} s a statement: {others}"


@contextlib.contextmanager
def open_places() -> Iterator[Places]:
    with (
        tempfile.TemporaryDirectory(prefix="prescore-bench-") as name,
        outside.postgres_database() as url,
    ):
        server = Server(Path(name))
        server.start()
        try:
            yield Places(url, server.url, Path(name))
        finally:
            server.kill()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", default="1,4,16,64", help="numbers of workers")
    parser.add_argument("--tasks", type=int, default=400, help="tasks of each row")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        what, database, url, folder, number, delay = json.loads(chosen.worker)
        print(json.dumps(WORKS[what](Places(database, url, Path(folder)), number, delay)))
        return
    with open_places() as places:
        print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
        for workers in map(int, chosen.workers.split(",")):
            add_tasks(places, chosen.tasks)
            print(measure(places, "ours", workers, chosen.tasks), flush=True)
            for name, prepare in (("rq", _add_jobs), ("procrastinate", _add_deferred)):
                if importlib.util.find_spec(name) is not None:
                    prepare(places, chosen.tasks)
                    print(measure(places, name, workers, chosen.tasks), flush=True)
        print()
        print(measure_beats(places, 8), flush=True)
        print(measure_slow_link(places, chosen.tasks), flush=True)


def _add_jobs(places: Places, many: int) -> None:
    from rq import Queue

    queue = Queue(connection=redis.Redis.from_url(places.redis))
    for _ in range(many):
        queue.enqueue("engine.do_nothing", result_ttl=0)


def _add_deferred(places: Places, many: int) -> None:
    app = open_procrastinate(places)
    with app.open():
        with contextlib.suppress(Exception):  # it is there
            app.schema_manager.apply_schema()
        app.configure_task("nothing").batch_defer(*[{}] * many)


if __name__ == "__main__":
    main()
