"""Lists of runs by status."""

from typing import get_args

from helpers import stored_records
from helpers.stored_records import enter_run, parts_on
from prescore.models.runs import ENDED, RunStatus
from service.runs import evaluations, run_lists
from service.runs.run_lists import RunQuery
from service.stored import datasets


def _list(records, status):
    asked = RunQuery(status=status)
    shown, _ = run_lists.list_runs(parts_on(records), evaluations.KIND, asked)
    return [identity.removeprefix("ev_") for identity, _ in shown]


def test_a_list_has_the_runs_with_its_status_the_latest_first(on_either):
    stored_records.add_version(on_either, "coco", "a")
    pinned = datasets.pin_split(on_either, "coco/test")
    statuses = get_args(RunStatus)
    with on_either.transaction() as connection:
        for at, status in enumerate(statuses):
            enter_run(connection, f"ev_{status}", pinned, status=status, created_at=at)
    assert _list(on_either, None) == [*reversed(statuses)]
    assert [_list(on_either, status) for status in statuses] == [[each] for each in statuses]
    unfinished = [status for status in reversed(statuses) if status not in ENDED]
    assert _list(on_either, "unfinished") == unfinished
