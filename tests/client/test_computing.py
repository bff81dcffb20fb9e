"""Commands that let the service compute: waited for with what is done told, left by Ctrl-C."""

import pytest
import typer

from client.contract_service import work
from prescore import exit_codes
from prescore.cli import follow
from prescore.models import Probes

RUN = {"id": "pb_1", "status": "running", "dataset": {"name": "x"}}


def _run(*works, status="running"):
    return Probes.model_validate({**RUN, "status": status, "works": works})


def test_each_work_is_told_once(capsys):
    ended = _run(work("human"), work("single"), status="succeeded")

    def compute(on_change):
        for seen in (_run(work("human", "running")), _run(work("human")), ended):
            on_change(seen)
        return ended

    assert follow.computed(compute) is ended
    told = [line.split()[:2] for line in capsys.readouterr().err.splitlines()]
    assert told == [
        ["pb_1", "running"],
        ["human", "done"],
        ["single", "done"],
        ["pb_1", "succeeded"],
    ]


def test_a_log_has_a_line_for_each_works_end_and_one_now_and_then(capsys, monkeypatch):
    """Ten works of 100 steps, each of a second or two."""
    names = [f"work-{number}" for number in range(10)]
    seconds = iter(range(20_000))
    monkeypatch.setattr(follow.time, "monotonic", lambda: next(seconds))

    def compute(on_change):
        for place in range(10):
            for step in range(100):
                done = [work(name) for name in names[:place]]
                waiting = [work(name, "waiting", 0, 100) for name in names[place + 1 :]]
                on_change(_run(*done, work(names[place], "running", step, 100), *waiting))
        ended = _run(*map(work, names), status="succeeded")
        on_change(ended)
        return ended

    follow.computed(compute)
    lines = capsys.readouterr().err.splitlines()
    assert sum(line.endswith("  done  0.5 s") for line in lines) == 10
    between = [line for line in lines if line.startswith("pb_1  running  ")]
    assert 20 <= len(between) <= 40
    assert between[0] == "pb_1  running  0 of 10 works ended; running: work-0 29/100"
    assert len(lines) == 10 + len(between) + 2


@pytest.mark.parametrize("begun", [True, False])
def test_ctrl_c_says_that_it_goes_on(capsys, begun):
    def compute(on_change):
        if begun:
            on_change(_run())
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as end:
        follow.computed(compute)
    assert end.value.exit_code == exit_codes.INTERRUPTED
    assert ("pb_1 goes on in the service" in capsys.readouterr().err) == begun
