"""Retention: what ended long ago goes, some at a time, and what is kept always stays."""

import json
import time

import pytest
import sqlalchemy as sa

from helpers import stored_records
from helpers.stored_records import enter_run, enter_scores
from service.engine import history, summaries
from service.engine.tables import (
    attempts,
    audit,
    past_attempts,
    run_names,
    runs,
    score_rows,
)
from service.retention import retention_policy
from service.retention.retention_policy import RetentionPolicy
from service.stored import datasets

DAY = 24 * 3600.0
POLICY = RetentionPolicy(keep_days=30, protected=frozenset({"branch=main"}))


@pytest.fixture
def records(on_either):
    stored_records.add_version(on_either, "tiny", "a")
    return on_either


def _expire(records, policy=POLICY):
    return retention_policy.apply_policy(records, policy)["expired"]


def _run(records, identity, *, days, score=None, kind="evaluation", ended=True, **marks):
    """A run that ended so many days ago."""
    at, told = time.time() - days * DAY, summaries.pack_json([])
    columns = {"kind": kind, "created_at": at, "snapshot": told, "event_log": told}
    columns |= {"finished_at": at} if ended else {"status": "running"}
    pinned = datasets.pin_split(records, "tiny@v1/test")
    with records.transaction() as connection:
        enter_run(connection, identity, pinned, {"postgen": ["bleu_1"]}, marks, **columns)
        if score is not None:
            enter_scores(connection, identity, {"bleu_1": (score, None, None)}, "signed")


def _there(records):
    with records.reading() as connection:
        return set(connection.execute(sa.select(runs.c.id)).scalars())


def test_what_ended_too_long_ago_goes_as_the_services_doing_and_the_rest_stays(records):
    _run(records, "ev_old", days=31)
    _run(records, "ev_new", days=29)
    _run(records, "ev_going", days=31, ended=False)
    assert _expire(records, RetentionPolicy()) == 0
    assert _expire(records) == 1
    assert _there(records) == {"ev_new", "ev_going"}
    with records.reading() as connection:
        found = connection.execute(sa.select(audit).where(audit.c.action == "run.expired")).one()
    assert (found.object, found.address, found.key) == ("ev_old", "", None)
    assert json.loads(found.detail) == {"days": 30}


def test_protected_labels_the_best_and_what_is_needed_stay(records):
    _run(records, "ev_main", days=31, score=0.1, branch="main")
    _run(records, "ev_best", days=31, score=0.9)
    _run(records, "ev_again", days=31, score=0.9)
    _run(records, "ev_topic", days=31, score=0.2, branch="topic")
    _run(records, "ev_baseline", days=31, score=0.3)
    _run(records, "ev_going", days=1, ended=False)
    with records.transaction() as connection:
        connection.execute(run_names.insert().values(run_id="ev_going", name="ev_baseline"))
    assert _expire(records) == 2
    assert _there(records) == {"ev_main", "ev_best", "ev_baseline", "ev_going"}
    with records.reading() as connection:
        assert set(connection.execute(sa.select(score_rows.c.run_id)).scalars()) == {
            *("ev_main", "ev_best", "ev_baseline")
        }


def test_probes_trainings_and_studies_stay(records):
    for prefix, kind in (("pb", "probes"), ("ln", "training"), ("st", "study")):
        _run(records, f"{prefix}_1", days=999, kind=kind)
    _run(records, "cp_1", days=999, kind="comparison")
    assert _expire(records) == 1
    assert len(_there(records)) == 3


def test_a_transaction_takes_few_runs_and_a_round_goes_on_with_the_rest(records, monkeypatch):
    monkeypatch.setattr(retention_policy, "_AT_ONCE", 2)
    for number in range(7):
        _run(records, f"ev_{number}", days=40 + number)
    assert retention_policy._expire(records, POLICY, time.time()) == 2
    assert _there(records) == {f"ev_{number}" for number in range(5)}, "the oldest go first"
    assert _expire(records) == 5


def test_attempts_of_long_ago_are_only_counted(records):
    now = time.time()
    with records.transaction() as connection:
        for days, outcome in ((40, "done"), (40, "done"), (40, "lost"), (1, "done")):
            at = now - days * DAY
            row = {"task_key": "k", "attempt": 1, "worker": "w", "started_at": at}
            connection.execute(attempts.insert().values(**row, ended_at=at, outcome=outcome))
    assert retention_policy.apply_policy(records, RetentionPolicy())["attempts"] == 3
    with records.reading() as connection:
        counted = dict(connection.execute(sa.select(past_attempts)).all())
        assert len(connection.execute(sa.select(attempts)).all()) == 1
    assert counted == {"done": 2, "lost": 1}
    with records.transaction() as connection:
        history.drop_attempts(connection, attempts.c.task_key == "k")
        counted = dict(connection.execute(sa.select(past_attempts)).all())
    assert counted == {"done": 3, "lost": 1}


def test_events_of_long_ago_are_forgotten_and_the_run_stays(records):
    _run(records, "ev_old", days=31)
    _run(records, "ev_new", days=29)
    assert retention_policy.apply_policy(records, RetentionPolicy())["event logs"] == 1
    with records.reading() as connection:
        logs = dict(connection.execute(sa.select(runs.c.id, runs.c.event_log)).all())
    assert logs["ev_old"] is None
    assert logs["ev_new"] is not None
