"""Processes that end with those that started them."""

import subprocess
import sys

import psutil
import pytest

from helpers.fleet import until

CHILD = """
import time
from service.engine import presence
presence.end_with_parent()
print("begun", flush=True)
time.sleep(60)
"""
PARENT = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", {CHILD!r}], stdout=subprocess.PIPE)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(
    sys.platform != "linux", reason="Linux alone tells a process of its parent's end"
)
def test_a_process_ends_with_the_one_that_started_it_though_it_is_stopped():
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        child = psutil.Process(int(parent.stdout.readline()))
        child.suspend()
        parent.kill()
    until(lambda: not _lives(child), 5, "the child's end")


def _lives(process):
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
