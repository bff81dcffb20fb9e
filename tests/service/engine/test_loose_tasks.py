"""Tasks that runs have left: those that others need stay, whoever comes in between."""

import sqlalchemy as sa

from helpers.stored_records import take_task
from service.contract.plan import planning
from service.contract.plan.tasks import Blob, Task
from service.engine import intake, leases
from service.engine import loose_tasks as loose
from service.engine.tables import attempts, draws, loose_tasks, run_tasks, task_rows
from service.engine.tables import checkpoints as rows
from service.stored import checkpoints

SENT = Blob(f"sha256:{'5' * 64}")
BELOW = Task("references", {"dataset": SENT}, {"split": "test", "tokenizer": "none"})
ABOVE = Task("bleu", {"captions": SENT, "references": BELOW}, {})


def _done(records, *tasks):
    _add(records, *tasks)
    for task in tasks:
        leases.finish_attempt(records, take_task(records, task.key, "w"), f"sha256:{task.key}", {})


def _add(records, *tasks, run=None):
    with records.transaction() as connection:
        intake.add_tasks(records, connection, tasks, deadline=1e12)
        if run is not None:
            row = {"position": 0, "name": "bleu", "cached": False}
            of_run = run_tasks.insert().values(run_id=run, task_key=tasks[-1].key, **row)
            connection.execute(of_run)


def _left(records, *tasks):
    """A run that had these tasks is deleted."""
    with records.transaction() as connection:
        connection.execute(run_tasks.delete())
        loose.loosen_tasks(connection, [task.key for task in tasks])


def _keys(records, table=task_rows, column="key"):
    with records.reading() as connection:
        return set(connection.execute(sa.select(table.c[column])).scalars())


def test_what_nobody_needs_goes_with_all_that_it_has_read(on_either):
    _done(on_either, BELOW, ABOVE)
    assert loose.delete_loose_tasks(on_either) == 0
    _left(on_either, ABOVE)
    assert loose.delete_loose_tasks(on_either) == 2
    assert _keys(on_either) == set()
    assert _keys(on_either, attempts, "task_key") == set()
    assert _keys(on_either, draws, "task_key") == set()
    assert loose.delete_loose_tasks(on_either) == 0


def test_what_a_kept_task_has_read_stays(on_either):
    other = Task("rouge_l", {"captions": SENT, "references": BELOW}, {})
    _done(on_either, BELOW, ABOVE, other)
    _left(on_either, ABOVE)
    assert loose.delete_loose_tasks(on_either) == 1
    assert _keys(on_either) == {BELOW.key, other.key}


def test_what_has_not_ended_is_looked_at_again_when_it_has(records):
    _add(records, BELOW)
    _left(records, BELOW)
    assert loose.delete_loose_tasks(records) == 0
    leases.finish_attempt(records, take_task(records, BELOW.key, "w"), f"sha256:{BELOW.key}", {})
    assert loose.delete_loose_tasks(records) == 1


def test_a_run_that_comes_between_look_and_deletion_keeps_what_its_tasks_have_read(on_either):
    """Trial 16. Of a run's tasks, the record names only those with a name of their own."""
    _done(on_either, BELOW, ABOVE)
    _left(on_either, ABOVE)
    with on_either.reading() as connection:
        found = _keys(on_either, loose_tasks, "task_key")
        needed = loose._needed(connection, found)
    _add(on_either, BELOW, ABOVE, run="ev_1")
    with on_either.transaction() as connection:
        assert loose._delete(connection, sorted(found), needed) == 0
    assert _keys(on_either) == {BELOW.key, ABOVE.key}


def test_the_conversion_of_a_checkpoint_stays_as_long_as_the_checkpoint(on_either):
    checkpoints.add(on_either, str(SENT), 10, {})
    made = planning.plan_conversion(str(SENT))
    _done(on_either, made)
    _left(on_either, made)
    assert loose.delete_loose_tasks(on_either) == 0
    with on_either.transaction() as connection:
        connection.execute(rows.delete())
    _left(on_either, made)
    assert loose.delete_loose_tasks(on_either) == 1
