"""Memory of the tasks of a machine: of one alone, and of all together."""

import os
import socket
import subprocess
import sys

import pytest

from workers.runtime.memory_share import MemoryShare


@pytest.fixture
def share(tmp_path):
    """Makes the share of a runner of this process, or of another one."""

    def make(purpose, pid=None):
        name = f"metrics@{socket.gethostname()}:{pid or os.getpid()}-{purpose}"
        return MemoryShare(800, 1000, tmp_path, name)

    return make


def test_a_task_alone_takes_as_much_as_one_may(share):
    one = share("one")
    assert one.find_excess(800) is None
    excess = one.find_excess(801)
    assert excess.is_alone
    assert "the task took 0 MB" in excess.detail


def test_of_all_together_the_one_that_has_most_gives_way(share):
    one, other = share("one"), share("other")
    assert one.find_excess(600) is None
    assert other.find_excess(400) is None
    assert other.find_excess(500) is None  # too much, but the other one has more
    assert not one.find_excess(600).is_alone
    one.forget()
    assert other.find_excess(700) is None


def test_one_of_two_that_have_as_much_gives_way(share):
    one, other = share("one"), share("other")
    one.find_excess(600)
    assert [bool(each.find_excess(600)) for each in (other, one)].count(True) == 1


def test_the_dead_have_none(share):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    share("gone", gone.pid).find_excess(700)
    assert share("one").find_excess(600) is None


def test_files_of_other_machines_are_left_alone(share, tmp_path):
    (tmp_path / "metrics@elsewhere:1-one").write_text("900")
    assert share("one").find_excess(600) is None
    assert (tmp_path / "metrics@elsewhere:1-one").exists()
