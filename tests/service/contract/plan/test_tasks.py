import itertools

import pytest

from service.contract.plan import tasks
from service.contract.plan.tasks import Blob, Task


def _columns(checkpoint="sha256:a", **parameters):
    inputs = {"checkpoint": Blob(checkpoint), "dataset": Blob("sha256:d")}
    return Task("columns", inputs, {"split": "test", **parameters})


def test_equal_tasks_have_one_key_whatever_the_order_of_their_names():
    inputs = {"dataset": Blob("sha256:d"), "checkpoint": Blob("sha256:a")}
    assert Task("columns", inputs, {"split": "test"}).key == _columns().key


@pytest.mark.parametrize(
    "other",
    [
        _columns("sha256:b"),
        _columns(images=[0, 128]),
        Task("prefix", _columns().inputs, _columns().parameters),
    ],
)
def test_what_defines_the_result_is_in_the_key(other):
    assert other.key != _columns().key


def test_the_version_of_the_code_is_in_the_key(monkeypatch):
    before = _columns().key
    newer = tasks.TaskKind("columns", "inference-now", version=99, seconds=1)
    monkeypatch.setitem(tasks.OTHER_KINDS, "columns", newer)
    assert _columns().key != before


def test_shards_are_waited_for_but_do_not_change_the_key():
    part = _columns(images=[0, 128])
    sharded = Task("columns", _columns().inputs, _columns().parameters, (part,))
    assert sharded.key == _columns().key
    assert sharded.needs == (part,)


def test_a_task_on_tasks_is_keyed_by_theirs():
    first, second = (Task("pregen", {"columns": _columns(at)}, {}) for at in "ab")
    assert first.key != second.key
    assert [task.kind for task in first.everything()] == ["columns", "pregen"]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((), "succeeded"),
        (("done", "unavailable"), "succeeded"),
        (("waiting", "ready"), "queued"),
        (("done", "ready"), "running"),
        (("running", "failed"), "running"),
        (("done", "failed", "canceled"), "failed"),
        (("done", "canceled"), "canceled"),
    ],
)
def test_an_evaluations_state_follows_from_its_tasks(statuses, expected):
    for order in itertools.permutations(statuses):
        assert tasks.derive_run_status(order) == expected
