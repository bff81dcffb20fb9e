"""A Java that is killed, or hangs, while a real service scores: its metric is tried again, then
fails with its last output; the others do not notice, and nothing is left behind.
"""

import contextlib
import os
import signal
import threading

import psutil
import pytest

from helpers.fleet import bundle, until, until_ended

CAPTIONS = [{"image": f"{index}.jpg", "caption": "w3 w4 w5 w6 w7 w8"} for index in range(30)]
REQUEST = {
    "captions": CAPTIONS,
    "dataset": "thirty/test",
    "postgen": ["meteor", "bleu", "cider_d"],
    "tokenizer": "none",  # Java is for METEOR alone
}
_OF_PYTHON = 4  # threads, at most, before Java is started; Java has a dozen


@pytest.fixture
def fleet(fleet):
    with fleet.client() as client:
        client.put("/v1/datasets/thirty", content=bundle(30))
    return fleet


def _javas(fleet):
    found = []
    for process in fleet.family():
        with contextlib.suppress(psutil.Error):
            if "coco" in process.cmdline():  # METEOR and PTB
                found.append(process)
    return found


@contextlib.contextmanager
def _struck(fleet, number):
    """Every Java that the service starts gets this signal, as soon as it is there: when the process
    has Java's threads, it has asked the kernel to end it with its parent.
    """
    for warm in _javas(fleet):
        with contextlib.suppress(psutil.NoSuchProcess):
            warm.kill()
    until(lambda: not _javas(fleet), 10, "the end of the Java that was there")
    over, pids = threading.Event(), set()

    def strike():
        while not over.wait(0.02):
            for process in _javas(fleet):
                with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
                    if process.pid not in pids and process.num_threads() > _OF_PYTHON:
                        os.kill(process.pid, number)
                        pids.add(process.pid)

    thread = threading.Thread(target=strike)
    thread.start()
    try:
        yield pids
    finally:
        over.set()
        thread.join()


def _evaluate(fleet, **more):
    with fleet.client() as client:
        identity = client.post("/v1/evaluations", json={**REQUEST, **more}).json()["id"]
        found = until_ended(client, identity, 90)
    return found, {task["name"]: task for task in found["tasks"]}


def _nothing_is_left(fleet, pids):
    until(lambda: not any(map(psutil.pid_exists, pids)), 10, "the end of every Java")
    until(lambda: fleet.leftovers() == [], 10, "an empty folder of attempts")


def test_a_java_that_is_killed_each_time_fails_its_metric_alone(fleet):
    with _struck(fleet, signal.SIGKILL) as killed:
        found, tasks = _evaluate(fleet)
    assert found["status"] == "failed"
    assert tasks["meteor"]["status"] == "failed"
    assert tasks["meteor"]["attempts"] == len(killed) > 1
    assert tasks["meteor"]["error"]["code"] == "java_failed"
    assert "Java was killed by signal 9" in tasks["meteor"]["error"]["detail"]
    assert set(found["scores"]) == {"bleu_1", "bleu_2", "bleu_3", "bleu_4", "cider_d"}
    _nothing_is_left(fleet, killed)
    after, _ = _evaluate(fleet, postgen=["bleu"], tokenizer="ptb")
    assert after["status"] == "succeeded", after["error"]
    assert len(_javas(fleet)) == 1  # another one was started, and stays


@pytest.mark.slow
def test_a_java_that_hangs_is_ended_with_its_task_at_the_deadline(fleet):
    with _struck(fleet, signal.SIGSTOP) as stopped:
        _found, tasks = _evaluate(fleet, deadline=6)
    assert (tasks["meteor"]["status"], tasks["meteor"]["error"]["code"]) == ("failed", "timeout")
    assert {tasks[name]["status"] for name in ("bleu", "cider_d")} == {"done"}
    _nothing_is_left(fleet, stopped)
