"""T34: thousands of tiny tasks leave nothing behind."""

import contextlib

import psutil
import pytest

from helpers.fleet import bundle, until

IMAGES = 3


def _request(number):
    """A task that nobody asked for before: BLEU of captions that name their number."""
    captions = [
        {"image": f"{image}.jpg", "caption": f"w{number % 50} w{image} n{number}"}
        for image in range(IMAGES)
    ]
    return {
        "captions": captions,
        "dataset": "three/test",
        "postgen": ["bleu"],
        "tokenizer": "none",
        "labels": {"batch": str(number)},
    }


def _submitted(client, number):
    answer = client.post("/v1/evaluations", json=_request(number))
    assert answer.status_code in (202, 503), answer.text
    return answer.status_code == 202


def _run(client, numbers):
    for number in numbers:
        until(lambda number=number: _submitted(client, number), 60, "a place in the queue")
    until(
        lambda: (
            not any(
                client.get("/v1/evaluations", params={"status": status}).json()["items"]
                for status in ("queued", "running")
            )
        ),
        300,
        "all of them are done",
    )


def _processes(fleet):
    """(memory, descriptors) of the processes that live as long as the service."""
    found = {}
    for process in fleet.family():
        with contextlib.suppress(psutil.Error):
            words = " ".join(process.cmdline())
            if "child" not in words:  # children are replaced now and then
                found[process.pid, words] = process.memory_info().rss, process.num_fds()
    return found


@pytest.mark.parametrize(
    ("warm", "tasks"), [(30, 30), pytest.param(1000, 2000, marks=pytest.mark.slow)]
)
def test_thousands_of_tiny_tasks_leave_nothing_behind(fleet, client, warm, tasks):
    client.put("/v1/datasets/three", content=bundle(IMAGES))
    left = set(fleet.leftovers())  # by workers that were killed, until the next one starts
    _run(client, range(warm))
    before = _processes(fleet)
    _run(client, range(warm, warm + tasks))
    after = _processes(fleet)
    assert before.keys() == after.keys()
    for process, (memory, descriptors) in before.items():
        # a page or two is nothing; on a small process five percent are less than a library
        assert after[process][0] <= 1.05 * memory + 2_000_000, process
        assert after[process][1] <= descriptors + 2, process
    lasting = [key for key in fleet.redis.scan_iter() if fleet.redis.ttl(key) == -1]
    assert not [key for key in lasting if key.startswith(b"rq:job")]
    assert len(lasting) < 20, lasting
    until(lambda: set(fleet.leftovers()) <= left, 5, "no more files than before")
