"""Commands that let the service compute: waited for with what is done told, left by Ctrl-C."""

import pytest
import typer

from client.scripted_service import task
from prescore import exit_codes
from prescore.cli import progress
from prescore.models import Probes

RUN = {"id": "pb_1", "status": "running", "dataset": {"name": "x"}}


def _run(*tasks, status="running"):
    return Probes.model_validate({**RUN, "status": status, "tasks": tasks})


def test_a_log_has_a_line_for_each_tasks_end_and_one_now_and_then(capsys, monkeypatch):
    """Ten tasks of 100 steps, each of a second or two."""
    names = [f"task-{number}" for number in range(10)]
    seconds = iter(range(20_000))
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(seconds))

    def compute(on_change):
        for place in range(10):
            for step in range(100):
                done = [task(name) for name in names[:place]]
                waiting = [task(name, "waiting", 0, 100) for name in names[place + 1 :]]
                on_change(_run(*done, task(names[place], "running", step, 100), *waiting))
        ended = _run(*map(task, names), status="succeeded")
        on_change(ended)
        return ended

    assert progress.follow_computation(compute).status == "succeeded"
    lines = capsys.readouterr().err.splitlines()
    assert sum(line.endswith("  done  0.5 s") for line in lines) == 10
    between = [line for line in lines if line.startswith("pb_1  running  ")]
    assert 20 <= len(between) <= 40
    assert between[0] == "pb_1  running  0 of 10 tasks ended; running: task-0 29/100"
    assert len(lines) == 10 + len(between) + 2
    assert (lines[0], lines[-1]) == ("pb_1  running", "pb_1  succeeded")


@pytest.mark.parametrize("begun", [True, False])
def test_ctrl_c_says_that_it_goes_on(capsys, begun):
    def compute(on_change):
        if begun:
            on_change(_run())
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as end:
        progress.follow_computation(compute)
    assert end.value.exit_code == exit_codes.INTERRUPTED
    assert ("pb_1 goes on in the service" in capsys.readouterr().err) == begun
