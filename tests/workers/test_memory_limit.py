"""T30 without a fleet: a real child, whose every task takes more memory than it may."""

import functools

import pytest

from helpers.fleet import bundle
from helpers.warm_children import start_warm_child
from service.engine import presence
from workers.runtime.memory_share import MemoryShare
from workers.runtime.runner import TaskRunner

LIMIT = 10_000_000  # bytes: less than Python takes
CAPTIONS = [{"image": f"{at}.jpg", "caption": "w1 w2"} for at in range(3)]


@pytest.fixture
def service(serve_here, tmp_path, monkeypatch):
    children = []

    def child(_toolbox):
        children.append(start_warm_child(tmp_path, LIMIT))
        return children[-1]

    limited = functools.partial(
        TaskRunner,
        memory=MemoryShare(LIMIT, LIMIT, tmp_path / "memory", presence.name_worker("metrics")),
    )
    monkeypatch.setattr("workers.runtime.in_process.TaskRunner", limited)
    monkeypatch.setattr("workers.runtime.in_process.ComputingThread", child)
    with serve_here(tmp_path) as service:
        yield service
    for each in children:
        each.close()


@pytest.mark.long
def test_a_task_that_outgrows_its_memory_fails_and_the_next_one_runs(service):
    asked = {"dataset": "tiny/test", "tokenizer": "none", "postgen": ["rouge_l"]}
    with service.client() as client:
        client.put("/v1/datasets/tiny", content=bundle(len(CAPTIONS)))
        for word in ("dog", "cat"):
            captions = [{**one, "caption": word} for one in CAPTIONS]
            request = {**asked, "captions": captions}
            answer = client.post("/v1/evaluations", json=request, headers={"Prefer": "wait=60"})
            ended = answer.json()
            assert ended["status"] == "failed"
            assert ended["error"]["code"] == "out_of_memory"
            assert "the limit is 10 MB" in ended["error"]["detail"]
