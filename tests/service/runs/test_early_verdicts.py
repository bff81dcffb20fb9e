"""Evaluations that end with their verdict; what takes the most turns, on PostgreSQL too."""

import json
import time

import sqlalchemy as sa

from helpers.estimated_plans import checkpoint_plan, with_estimate
from helpers.stored_records import PINNED, enter_run, take_task
from service.contract.plan import estimates
from service.contract.plan.planning import Plan
from service.contract.plan.postgen import PostgenRequest
from service.contract.results import StoredEvaluation
from service.engine import history, intake, leases, summaries, task_expiry
from service.engine.tables import outbox, run_tasks, runs, score_rows, task_rows
from service.runs import verdicts

SIGNATURE = {"cider_d": "cider_d|refs:5|df:corpus(n=1000)|v:2"}
PREGEN = {"mean_max_normcount_prefix0": 0.3, "geomean_join_pplx_none": 20.0}


def _plan(images=1000, families=("cider_d", "spice")):
    return with_estimate(checkpoint_plan(PostgenRequest(families, "none"), images))


def _insert(records, plan, identity="ev_1", until="verdict", gates=("cider_d >= 0.4",)):
    request = {"checkpoint": "sha256:c", "pregen": "all", "postgen": ["cider_d", "spice"]}
    request |= {"gates": list(gates), "until": until}
    with records.transaction() as connection:
        cached = intake.add_tasks(records, connection, plan.everything(), 1e12)
        times = {"created_at": time.time(), "deadline": 1e12}
        enter_run(connection, identity, PINNED, request, status="queued", **times)
        for position, (name, task) in enumerate(plan.named.items()):
            named = {"run_id": identity, "position": position, "name": name}
            named |= {"task_key": task.key, "cached": cached[task.key]}
            connection.execute(run_tasks.insert().values(named))
        history.settle_run(connection, identity)


def _do(records, task, summary=None):
    lease = take_task(records, task.key, "w")
    assert lease is not None, (task.kind, task.parameters)
    return leases.finish_attempt(records, lease, f"sha256:{task.key}", summary or {})


def _begin(records, **request):
    """The plan of an evaluation, up to the moment when captions are decoded."""
    plan = _plan()
    _insert(records, plan, **request)
    for name in ("columns", "order", "references"):
        _do(records, plan.named[name])
    return plan


def _look(records, plan, at, low, high):
    _do(records, plan.named["captions"].parts[at])
    images = 128 * (at + 1)
    said = {"value": (low + high) / 2, "interval": [low, high], "images": images, "of": 1000}
    summary = {"estimate": {"cider_d": said}, "signature": SIGNATURE}
    _do(records, plan.named["estimate"].parts[at], summary)


def _evaluation(records, identity="ev_1"):
    """Its status, its tasks by their names, and what its gates and all of it come to."""
    with records.reading() as connection:
        row = connection.execute(sa.select(runs).where(runs.c.id == identity)).one()
        rows = (
            history.task_statuses(connection, identity)
            if row.snapshot is None
            else summaries.unpack_json(row.snapshot)
        )
    kept = StoredEvaluation.model_validate_json(row.request)
    return row.status, {each["name"]: each for each in rows}, verdicts.decide_gates(rows, kept)


def _statuses(records, *tasks):
    keys = [task.key for task in tasks]
    with records.reading() as connection:
        query = sa.select(task_rows.c.status).where(task_rows.c.key.in_(keys))
        return set(connection.execute(query).scalars())


def test_an_evaluation_ends_with_the_look_that_decides_its_gates_and_the_rest_is_not_decoded(
    records,
):
    plan = _begin(records)
    done, parts = plan.named["captions"].parts[:2], plan.named["captions"].parts[2:]
    begun = take_task(records, parts[0].key, "w")
    _look(records, plan, 0, 0.39, 0.47)
    assert _evaluation(records)[0] == "running"
    _look(records, plan, 1, 0.41, 0.45)
    status, rows, ((gate,), verdict) = _evaluation(records)
    assert status == "succeeded"
    assert (gate.verdict, verdict) == ("passed", "passed")
    assert "between 0.41 and 0.45" in gate.detail
    assert gate.scores["cider_d"].interval == (0.41, 0.45)
    assert rows["captions"]["status"] == rows["spice"]["status"] == "canceled"
    assert _statuses(records, *parts) == {"canceled"}
    assert _statuses(records, *done) == {"done"}
    assert not leases.extend_lease(records, begun)
    with records.reading() as connection:
        told = history.read_events_after(connection, "ev_1", 0)
    assert [row.kind for row in told].count("end") == 1
    assert (told[-1].kind, json.loads(told[-1].payload)) == ("end", {"status": "succeeded"})


def test_what_another_evaluation_needs_goes_on(on_either):
    records = on_either
    plan = _begin(records)
    _insert(records, plan, "ev_2", until="done")
    _look(records, plan, 0, 0.2, 0.3)
    assert _evaluation(records)[0] == "succeeded"
    status, _, (_, verdict) = _evaluation(records, "ev_2")
    assert (status, verdict) == ("running", "failed")  # it shall be done
    assert _statuses(records, *plan.named["captions"].parts[1:]) == {"ready"}
    with records.transaction() as connection:
        task_expiry.cancel_run(connection, "ev_2")
    assert _statuses(records, *plan.named["captions"].parts[1:]) == {"canceled"}


def test_every_gate_must_be_decided(records):
    plan = _begin(records, gates=("cider_d >= 0.4", "perplexity < 30"))
    _look(records, plan, 0, 0.5, 0.6)
    assert _evaluation(records)[0] == "running"
    _do(records, plan.named["pregen"], {"scores": PREGEN, "signature": "pregen|v:1"})
    assert _evaluation(records)[0] == "succeeded"


def test_gates_on_pregen_scores_spare_the_decoding(records):
    plan = _plan()
    _insert(records, plan, gates=("perplexity < 30",))
    _do(records, plan.named["columns"])
    _do(records, plan.named["pregen"], {"scores": PREGEN, "signature": "pregen|v:1"})
    assert _evaluation(records)[0] == "succeeded"
    assert _statuses(records, *plan.named["captions"].parts) == {"canceled"}
    with records.reading() as connection:
        kept = set(connection.execute(sa.select(score_rows.c.metric)).scalars())
    assert kept == {"mean_max_normcount_prefix0", "perplexity"}
    plan = _plan(families=("cider_d",))
    _insert(records, plan, "ev_2", gates=("perplexity < 30",))
    assert _evaluation(records, "ev_2")[0] == "succeeded"  # known when it came


def test_after_a_failure_it_ends_with_its_tasks(records):
    """Its verdict stands, but that something failed must not be hidden."""
    plan = _begin(records)
    lease = take_task(records, plan.named["prefix"].key, "w")
    leases.fail_attempt(records, lease, {"code": "x", "detail": "y"}, death=False, retry=False)
    _look(records, plan, 0, 0.5, 0.6)
    assert _evaluation(records)[0] == "running"


def test_an_estimate_is_the_latest_looks_and_its_progress_that_of_images(records):
    plan = _begin(records, until="done")
    _look(records, plan, 0, 0.3, 0.5)
    _look(records, plan, 1, 0.35, 0.45)
    row = _evaluation(records)[1]["estimate"]
    assert (row["status"], row["done"], row["total"]) == ("running", 256, 1000)
    assert json.loads(row["summary"])["estimate"]["cider_d"]["interval"] == [0.35, 0.45]


def test_captions_that_wait_for_their_order_do_not_overtake_others(records):
    """They are in line as if they had been new, in their order."""
    plan = _begin(records, until="done")
    parts = plan.named["captions"].parts
    with records.reading() as connection:
        sent = connection.execute(sa.select(outbox).order_by(outbox.c.id)).all()
    woken = [row for row in sent if row.task_key in {part.key for part in parts}]
    assert [row.task_key for row in woken] == [part.key for part in parts]


def _with_another_baseline():
    plan = _plan(families=("cider_d",))
    named = {name: task for name, task in plan.named.items() if name != estimates.ESTIMATE}
    return with_estimate(Plan(named), {"cider_d": "sha256:past"})


def test_a_new_look_at_captions_that_are_there_reads_their_parts(records):
    plan, other = _begin(records, until="done"), _with_another_baseline()
    for part in plan.named["captions"].parts:
        _do(records, part)
    _do(records, plan.named["captions"])
    _insert(records, other, "ev_2", until="done")
    lease = take_task(records, other.named["estimate"].parts[0].key, "w")
    assert lease.inputs["captions0"] == f"sha256:{plan.named['captions'].parts[0].key}"
    assert _statuses(records, *plan.named["captions"].parts) == {"done"}


def test_parts_that_are_not_there_are_made_for_those_who_read_them(records):
    """The whole may be there without them: it was joined from others."""
    plan, other = _begin(records, until="done"), _with_another_baseline()
    parts = [part.key for part in plan.named["captions"].parts]
    with records.transaction() as connection:
        whole = task_rows.c.key == plan.named["captions"].key
        connection.execute(task_rows.update().where(whole).values(status="done", result="sha256:w"))
        alone = task_rows.c.key.in_(parts)
        connection.execute(task_rows.update().where(alone).values(status="canceled"))
    _insert(records, other, "ev_2", until="done")
    assert _statuses(records, other.named["estimate"].parts[0]) == {"waiting"}
    assert _statuses(records, *other.named["captions"].parts) == {"ready"}
