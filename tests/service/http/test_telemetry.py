"""The numbers at /metrics."""

import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import redis
import sqlalchemy as sa
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families as families

from helpers import statements, stored_records
from helpers.documents import section, table
from helpers.fleet import bundle_of
from helpers.stored_records import take_task
from service.contract.plan.tasks import Blob, Task
from service.engine import fleet_status, intake, leases
from service.engine.records import Records
from service.engine.tables import deliveries, task_rows, webhooks
from service.engine.task_queue import InProcessQueue
from service.http import telemetry
from service.http.telemetry import Telemetry

LATER = 1e12
ALL_QUEUES = ["inference", "inference-now", "metrics", "parsing", "verification"]


class LongQueue(InProcessQueue):
    """It takes a moment to count."""

    def __init__(self):
        super().__init__(lambda _: None)
        self.counted = 0

    def waiting(self):
        time.sleep(0.02)
        self.counted += 1
        return {"metrics": self.counted}


class AwayQueue(InProcessQueue):
    def waiting(self):
        raise redis.ConnectionError("away")


@pytest.fixture
def records(engine, monkeypatch):
    monkeypatch.setattr(telemetry, "_KEPT_SECONDS", 0.0)
    return Records(engine)


def test_counting_takes_a_small_part_of_the_time_however_often_it_is_asked(tmp_path, monkeypatch):
    records, queue = Records(stored_records.open_empty_record(tmp_path)), LongQueue()
    told = Telemetry(records, queue)
    with ThreadPoolExecutor(4) as pool:
        pages = set(pool.map(lambda _: _counts(told), range(20)))
    assert (queue.counted, len(pages)) == (1, 1)
    monkeypatch.setattr(telemetry, "_KEPT_SECONDS", 0.0)
    other = Telemetry(records, queue)
    assert 'prescore_queued{queue="metrics"} 2.0' in _counts(other)
    assert 'prescore_queued{queue="metrics"} 3.0' in _counts(other)
    records.engine.dispose()


def _counts(told):
    lines = generate_latest(told.registry).decode().splitlines()
    return "\n".join(line for line in lines if line.startswith("prescore_queued"))


def _numbers(records, queue=None, home=None):
    """Each sample's value by its name and the values of its labels."""
    told = Telemetry(records, queue or InProcessQueue(lambda _: None), home)
    return {
        (sample.name, *sample.labels.values()): sample.value
        for family in told.registry.collect()
        for sample in family.samples
        if sample.name.startswith("prescore_")
    }


def _columns(name):
    return Task("columns", {"checkpoint": Blob(f"sha256:{name}")}, {"split": "test"})


def _add(records, *tasks):
    with records.transaction() as connection:
        intake.add_tasks(records, connection, tasks, LATER)


def test_tasks_are_told_by_queue_and_state_and_the_longest_ready_one_by_its_age(records):
    found = _numbers(records)
    assert [found["prescore_queue_oldest_seconds", queue] for queue in ALL_QUEUES] == [0.0] * len(
        ALL_QUEUES
    )
    assert found["prescore_queue_tasks", "metrics", "running"] == 0
    old, new, other = map(_columns, "abc")
    _add(records, old, new, other)
    with records.transaction() as connection:
        long_ago = task_rows.update().where(task_rows.c.key == old.key)
        connection.execute(long_ago.values(ready_at=time.time() - 100))
        connection.execute(task_rows.update().values(created_at=5.0))  # that is not asked
    assert take_task(records, other.key, "w") is not None
    found = _numbers(records)
    assert found["prescore_queue_tasks", "inference-now", "ready"] == 2
    assert found["prescore_queue_tasks", "inference-now", "running"] == 1
    assert found["prescore_queue_tasks", "inference", "ready"] == 0
    assert 100 <= found["prescore_queue_oldest_seconds", "inference-now"] < 150
    assert found["prescore_outbox",] == 3


def test_a_task_that_killed_its_process_is_quarantined_and_one_with_errors_failed(records):
    killer, wrong = map(_columns, "ab")
    _add(records, killer, wrong)
    error = {"code": "internal", "detail": "x"}
    for task, deaths in ((killer, leases.MAX_DEATHS), (wrong, 0)):
        while (lease := take_task(records, task.key, "w")) is not None:
            leases.fail_attempt(records, lease, error, death=bool(deaths), retry=True)
    found = _numbers(records)
    assert found["prescore_queue_tasks", "inference-now", "failed"] == 2
    assert found["prescore_quarantined", "inference-now"] == 1
    assert found["prescore_quarantined", "metrics"] == 0
    assert found["prescore_attempts_total", "internal"] == leases.MAX_DEATHS + leases.MAX_FAILURES


def test_messages_that_wait_and_dead_letters_are_told(records):
    hook = {"place": "http://here", "url": "https://there", "events": "[]", "format": "standard"}
    message = {"event": "run.ended", "body": "{}", "next_at": 1.0, "created_at": 1.0}
    with records.transaction() as connection:
        for name, lost in (("a", 3), ("b", 4)):
            row = {"id": name, "lost": lost, "created_at": 1.0, **hook}
            connection.execute(webhooks.insert().values(**row))
        added = deliveries.insert().values(id="m", webhook_id="a", team="local", **message)
        connection.execute(added)
    found = _numbers(records)
    assert found["prescore_webhook_dead_letters",] == 7
    assert found["prescore_webhook_waiting",] == 1


def test_the_janitors_last_round_and_the_last_backup_are_told_if_there_was_one(records):
    names = ("prescore_janitor_seconds",), ("prescore_backup_seconds",)
    assert not set(names) & set(_numbers(records))
    fleet_status.note_moment(records, fleet_status.LAST_JANITOR_ROUND, time.time() - 40)
    found = _numbers(records)
    assert 40 <= found[names[0]] < 90
    assert names[1] not in found
    fleet_status.note_moment(records, fleet_status.LAST_BACKUP, time.time() - 7000)
    assert 7000 <= _numbers(records)[names[1]] < 7050


def test_workers_are_told_by_the_queues_that_they_serve(records):
    queue = InProcessQueue(lambda _: None)
    queue.workers = lambda: {"inference": 2, "metrics": 0}
    found = _numbers(records, queue)
    told = {name: found["prescore_workers", name] for name in ALL_QUEUES}
    assert told == {
        "inference": 2,
        "inference-now": 2,
        "metrics": 0,
        "parsing": 0,
        "verification": 2,
    }


def test_the_disk_of_home_is_told_where_there_is_one(records, tmp_path, monkeypatch):
    disk = SimpleNamespace(total=100, used=60, free=40)
    monkeypatch.setattr(
        telemetry.shutil, "disk_usage", lambda at: disk if at == tmp_path else 1 / 0
    )
    found = _numbers(records, home=tmp_path)
    assert (found["prescore_home_free_bytes",], found["prescore_home_bytes",]) == (40, 100)
    monkeypatch.undo()
    assert not any("home" in key[0] for key in _numbers(records, home=tmp_path / "none"))


def test_what_does_not_answer_is_down_and_the_rest_is_told(tmp_path, records):
    found = _numbers(records, AwayQueue(lambda _: None), tmp_path)
    assert (found["prescore_redis_up",], found["prescore_record_up",]) == (0, 1)
    assert ("prescore_outbox",) in found
    assert not any(key[0] == "prescore_workers" for key in found)
    gone = Records(sa.create_engine(f"sqlite:///{tmp_path / 'nowhere' / 'record'}"))
    found = _numbers(gone, home=tmp_path)
    assert (found["prescore_redis_up",], found["prescore_record_up",]) == (1, 0)
    assert ("prescore_home_bytes",) in found
    assert not any(key[0] == "prescore_outbox" for key in found)
    gone.engine.dispose()


def test_no_number_reads_the_rows_of_tasks_or_attempts(tmp_path):
    """What is asked of a large record is in its indexes: the first of those that are ready, too."""
    engine = stored_records.open_empty_record(tmp_path)
    records = Records(engine)
    with statements.watched(engine) as found, records.reading() as connection:
        list(telemetry.collect_numbers(connection, time.time()))
    of_large = [
        step
        for statement in found
        for step in statement.plan
        if any(f"{verb} {name} " in f"{step} " for verb in ("SCAN", "SEARCH") for name in LARGE)
    ]
    assert len(of_large) == 5 + len(ALL_QUEUES)
    one_entry = "USING INDEX ix_tasks_ready (queue=?)"
    assert [step for step in of_large if "COVERING" not in step and one_entry not in step] == []
    engine.dispose()


LARGE = ("tasks", "runs", "attempts")


def test_the_table_of_numbers_says_what_metrics_says(serve_here, tmp_path):
    """A name, or with labels as `name{label,other}`; its type; its meaning as it is told."""
    with serve_here(tmp_path / "home") as service, service.client() as client:
        client.put("/v1/datasets/tiny", content=bundle_of({"a.jpg": ["a cat"]}))
        assert client.post("/v1/evaluations", json=ASKED).status_code in (201, 202)
        fleet_status.note_moment(service.records, fleet_status.LAST_JANITOR_ROUND, time.time())
        fleet_status.note_moment(service.records, fleet_status.LAST_BACKUP, time.time())
        told = client.get("/metrics").text
    shown = [_row(each) for each in families(told) if each.name.startswith("prescore_")]
    rows = table(section("deploy/README.md", "What Prometheus is told"))
    documented = [[row[0].strip("`"), *row[1:]] for row in rows]
    assert sorted(documented) == sorted(row for row in shown if "_created" not in row[0])


ASKED = {
    "captions": [{"image": "a.jpg", "caption": "a cat"}],
    "dataset": "tiny/test",
    "postgen": ["bleu_1"],
    "tokenizer": "none",
}


def _row(family):
    labels = [name for name in family.samples[0].labels if name != "le"] if family.samples else []
    name = f"{family.name}_total" if family.type == "counter" else family.name
    return [f"{name}{{{','.join(labels)}}}" if labels else name, family.type, family.documentation]
