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


def test_the_version_of_the_code_is_in_the_key(monkeypatch):
    before = _columns().key
    newer = tasks.TaskKind("columns", "inference-now", version=99, seconds=1)
    monkeypatch.setitem(tasks.OTHER_KINDS, "columns", newer)
    assert _columns().key != before


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
