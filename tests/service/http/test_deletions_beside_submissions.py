"""Trial 16: evaluations of the same objects are submitted, deleted and submitted again, by several
at once, beside a collector without any grace: nothing that a row names is ever missing.

In process: what is at stake is the order of transactions and of changes in the folder of objects,
and both are real. With a grace below nothing, an object may be collected the moment it is stored.
"""

import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from helpers.fleet import bundle, checkpoint, digest, until_ended
from service.engine import tables
from service.stored import garbage

NO_GRACE = -60.0
SAID = ("w2 w3", "w2 w3 w4", "w7")
MODEL = checkpoint(seed=1601)
ALLOWED = {201, 202, 204, 404, 409, 503}  # a refusal is right where somebody has deleted it before


def _captions(text):
    return {
        "captions": [{"image": str(900 + n), "caption": text} for n in range(40)],
        "postgen": ["bleu_1"],
        "tokenizer": "none",
    }


class RacingClient:
    """Does one thing after another that others undo."""

    def __init__(self, service, seed):
        self.client = service.client()
        self.choose = random.Random(seed)
        self.own = []
        self.scores = []
        self.refused = []

    def do(self, times):
        for _ in range(times):
            self.choose.choice((self.submit, self.submit, self.delete, self.upload, self.publish))()

    def submit(self):
        asked = [_captions(text) for text in SAID]
        asked.append({"checkpoint": digest(MODEL), "postgen": []})
        request = self.choose.choice(asked)
        dataset = self.choose.choice(("tiny/test", "coming/test"))
        answer = self._ask("POST", "/v1/evaluations", json={**request, "dataset": dataset})
        if answer.status_code == 202:
            said = request.get("captions", [{"caption": "the model"}])[0]["caption"]
            self.own.append((answer.json()["id"], said))

    def delete(self):
        if self.choose.random() < 0.3:
            what = (f"checkpoints/{digest(MODEL)}", "datasets/coming")
            self._ask("DELETE", f"/v1/{self.choose.choice(what)}")
        elif self.own:
            identity, said = self.own.pop(self.choose.randrange(len(self.own)))
            ended = until_ended(self.client, identity, 60)
            self.scores.append((said, ended))
            self._ask("DELETE", f"/v1/evaluations/{identity}")

    def upload(self):
        self._ask("PUT", f"/v1/checkpoints/{digest(MODEL)}", content=MODEL)

    def publish(self):
        self._ask("PUT", "/v1/datasets/coming", content=bundle(40))

    def _ask(self, method, path, **more):
        answer = self.client.request(method, path, **more)
        if answer.status_code not in {200, *ALLOWED}:
            self.refused.append((method, path, answer.status_code, answer.text))
        return answer


@pytest.mark.long
@pytest.mark.parametrize("times", [6, pytest.param(150, marks=pytest.mark.slow)])
def test_nothing_that_is_named_is_ever_collected(service, times):
    over = threading.Event()
    collected = []

    def collect():
        while not over.is_set():
            collected.append(garbage.collect_garbage(service.records, _blobs(service), NO_GRACE))

    collector = threading.Thread(target=collect)
    collector.start()
    several = [RacingClient(service, seed) for seed in range(4)]
    try:
        with ThreadPoolExecutor(len(several)) as pool:
            for done in [pool.submit(each.do, times) for each in several]:
                done.result()
        left = [
            (said, until_ended(each.client, of, 60)) for each in several for of, said in each.own
        ]
    finally:
        over.set()
        collector.join()
        for each in several:
            each.client.close()
    assert [told for each in several for told in each.refused] == []
    ended = [*left, *(told for each in several for told in each.scores)]
    assert {run["status"] for _, run in ended} == {"succeeded"}, _failures(ended)
    assert _values(ended).keys() >= {"w7"} or times < 100
    assert all(len(values) == 1 for values in _values(ended).values()), "one score, ever"
    assert _dangling(service) == []
    print(f"{len(ended)} evaluations, {sum(collected)} objects in {len(collected)} collections")


def _blobs(service):
    return service._running.blobs


def _failures(ended):
    return [run["error"] for _, run in ended if run["status"] != "succeeded"]


def _values(ended):
    found = {}
    for said, run in ended:
        scores = {name: score["value"] for name, score in run["scores"].items()}
        found.setdefault(said, set()).add(json.dumps(scores, sort_keys=True))
    return found


def _dangling(service):
    """What rows name and is not there: objects, and tasks."""
    names = tables.checkpoints.c.digest, tables.datasets.c.digest, tables.datasets.c.captions
    with service.records.reading() as connection:
        objects = {one for name in names for one in connection.execute(sa.select(name)).scalars()}
        tasks = connection.execute(sa.select(tables.task_rows)).all()
        held = set(connection.execute(sa.select(tables.run_tasks.c.task_key)).scalars())
    keys = {task.key for task in tasks}
    objects |= {task.result for task in tasks if task.status == "done"}
    read = {at for task in tasks for at in json.loads(task.inputs).values()}
    parts = {key for task in tasks for key in json.loads(task.parts)}
    needed = {at.removeprefix("work:") for at in read if at.startswith("work:")}
    of_uploads = {digest(MODEL)} | {at for at in read if at in objects}
    sent = {at for at in read if at.startswith("sha256:")} - of_uploads
    missing = [at for at in objects | sent if not _blobs(service).has(at)]
    return [*missing, *((held | needed) - keys), *(parts - keys if held else [])]
