"""How a child has ended, and whose doing that was."""

import os
import signal
import sys
from pathlib import Path

import pytest

from service.contract.assets import AssetFolders
from workers.processes import ChildGone, ChildProcess
from workers.runtime.child_services import ChildServices, ServiceSettings
from workers.runtime.warm_child import ExitCause, WarmChild, count_out_of_memory_kills


def _ended(code):
    """A child that runs this Python code, as the runner finds it when it has gone."""
    warm = WarmChild.__new__(WarmChild)
    warm._child = ChildProcess(
        [sys.executable, "-c", f"import os, time; {code}"], dict(os.environ), 1000
    )
    warm._services = ChildServices(ServiceSettings(AssetFolders(Path()), 1))
    warm._killed_before = count_out_of_memory_kills()
    with pytest.raises(ChildGone):
        warm.receive(30)
    return warm.end()


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("os.abort()", ExitCause.OWN),
        ("os.kill(os.getpid(), 11)", ExitCause.OWN),
        ("os._exit(3)", ExitCause.OWN),
        ("os.close(1); time.sleep(60)", ExitCause.OWN),  # it lives, and has nothing more to say
        ("os.kill(os.getpid(), 9)", ExitCause.OUTSIDE),
        ("os.kill(os.getpid(), 15)", ExitCause.OUTSIDE),
    ],
)
def test_a_death_from_outside_is_told_apart_from_ones_own(code, cause, monkeypatch):
    monkeypatch.setattr("workers.processes._DEATH_SECONDS", 0.2)
    assert _ended(code).cause is cause


def test_a_child_that_the_system_kills_for_lack_of_memory_has_taken_too_much(monkeypatch):
    monkeypatch.setattr("workers.runtime.warm_child.count_out_of_memory_kills", lambda: 1_000_000)
    ended = _ended(f"os.kill(os.getpid(), {signal.SIGKILL.value})")
    assert ended.cause is ExitCause.MEMORY
    assert "memory was short" in ended.how


@pytest.mark.long
def test_the_systems_count_is_read_where_there_is_one(tmp_path):
    events, none = tmp_path / "memory.events", tmp_path / "none"
    events.write_text("low 0\nhigh 0\nmax 7\noom 2\noom_kill 2\n")
    assert count_out_of_memory_kills([none, events]) == 2
    assert count_out_of_memory_kills([none]) == 0
    assert count_out_of_memory_kills() >= 0
