"""Commands that let the service compute: waited for with what is done told, left by Ctrl-C."""

import pytest
import typer

from client.contract_service import work
from prescore.cli import console, follow
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
    assert told == [["human", "running"], ["human", "done"], ["single", "done"]]


@pytest.mark.parametrize("begun", [True, False])
def test_ctrl_c_says_that_it_goes_on(capsys, begun):
    def compute(on_change):
        if begun:
            on_change(_run())
        raise KeyboardInterrupt

    with pytest.raises(typer.Exit) as end:
        follow.computed(compute)
    assert end.value.exit_code == console.INTERRUPTED
    assert ("pb_1 goes on in the service" in capsys.readouterr().err) == begun
