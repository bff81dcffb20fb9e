"""More keys than a statement may name: SQLite takes 32,766 values and PostgreSQL 65,535."""

import json
import sqlite3
import time
from contextlib import contextmanager

import pytest

from helpers.stored_records import PINNED, enter_run
from service.engine import graph, history, intake
from service.engine.tables import needs, run_tasks, task_rows

WHOLE = "w" * 64
RUN = "ev_1"


@pytest.fixture(params=[200, pytest.param(66_000, marks=pytest.mark.slow)])
def shards(request, monkeypatch):
    """Keys; of a few, a statement may name fewer."""
    if request.param == 200:
        monkeypatch.setattr("service.engine.records._AT_ONCE", 50)
    return [f"{place:064x}" for place in range(request.param)]


SOON = {"deadline": time.time() + 100, "created_at": time.time()}
TASK = {**dict.fromkeys(("waiting_for", "attempt", "deaths", "done", "total"), 0), **SOON}
TASK |= {
    "inputs": "{}",
    "parts": "[]",
    "parameters": "{}",
    "queue": "inference",
    "kind": "captions",
}
NAMED = {"run_id": RUN, "position": 0, "name": "captions", "cached": False, "task_key": WHOLE}


def _task(key, status, **more):
    return {**TASK, "key": key, "status": status, **more}


def _add(records, *added):
    with records.transaction() as connection:
        enter_run(connection, RUN, PINNED, status="queued", **SOON)
        connection.execute(run_tasks.insert().values(NAMED))
        for table, rows in added:
            connection.execute(table.insert(), rows)


@contextmanager
def _limited(records, shards):
    """A transaction in which SQLite takes as many values as it usually does, or 100 for a few."""
    with records.transaction() as connection:
        if records.is_file:
            own = connection.connection.driver_connection
            own.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, min(32_766, len(shards) // 2))
        yield connection


def test_a_run_may_have_more_shards_than_a_statement_may_name(on_either, shards):
    parts = [_task(key, "ready", parameters='{"images": [0, 1]}') for key in shards]
    parts[-1]["status"] = "done"
    _add(on_either, (task_rows, [_task(WHOLE, "waiting", parts=json.dumps(shards)), *parts]))
    with _limited(on_either, shards) as connection:
        (task,) = history.task_statuses(connection, RUN)
        assert (task["status"], task["done"], task["total"]) == ("running", 1, len(shards))
        assert intake.find_done(connection, shards) == {shards[-1]}
        history.update_runs(connection, [*shards, WHOLE])
        assert history.read_events_after(connection, RUN, 0)


def test_a_task_may_fail_for_which_more_wait_than_a_statement_may_name(on_either, shards):
    waiting = [_task(key, "waiting") for key in shards]
    first, below = _task("f" * 64, "running", kind="order"), _task(WHOLE, "waiting")
    of_first = [{"task_key": key, "needs_key": first["key"]} for key in shards]
    of_below = [{"task_key": WHOLE, "needs_key": key} for key in shards[-1:]]
    _add(on_either, (task_rows, [first, below, *waiting]), (needs, [*of_first, *of_below]))
    with _limited(on_either, shards) as connection:
        error = {"code": "timeout", "detail": "late"}
        touched = graph.fail_dependents(connection, first["key"], error)
        assert set(touched) == {*shards, WHOLE}
        history.update_runs(connection, touched)
        assert history.read_events_after(connection, RUN, 0)
