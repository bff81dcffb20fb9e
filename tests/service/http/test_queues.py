"""Who works and what waits, over HTTP: with real leases, of tasks that nobody performs."""

import time
from datetime import datetime

import pytest
import redis
import sqlalchemy as sa

from helpers.fleet import bundle, checkpoint, upload
from service.access import keys
from service.contract.askers import Scope
from service.engine import leases
from service.engine.tables import attempts, needs, outbox, run_tasks, runs, task_rows

CAPTIONS = [{"image": f"{at}.jpg", "caption": "w1 w2"} for at in range(40)]
TABLES = (attempts, needs, outbox, run_tasks, runs, task_rows)
QUEUES = ["inference-now", "verification", "inference", "metrics", "parsing"]
IN_PROCESS = ["inference@in-process", "metrics@in-process"]
WORKER = "metrics@a-host:7-0123abcd"


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    with serve_here(tmp_path_factory.mktemp("a home")) as service:
        service.texts = {
            team: keys.create_key(service.records, team, Scope.ADMIN)[1] for team in ("red", "blue")
        }
        service.hold()
        yield service


@pytest.fixture
def ask(service):
    """Asks as somebody of a team."""
    with service.client() as client:

        def asked(team, method, path, **more):
            headers = {"Authorization": f"Bearer {service.texts[team]}"}
            answer = client.request(method, path, headers=headers, **more)
            assert answer.is_success, answer.text
            return answer.json()

        for team in service.texts:
            asked(team, "PUT", "/v1/datasets/tiny", content=bundle(40))
        yield asked
    with service.records.transaction() as connection:
        for table in TABLES:
            connection.execute(table.delete())


def _submit(ask, team, *metrics, **more):
    asked = {"dataset": "tiny/test", "captions": CAPTIONS, "postgen": metrics, "tokenizer": "none"}
    return ask(team, "POST", "/v1/evaluations", json={**asked, **more})


def _queues(ask, team):
    found = ask(team, "GET", "/v1/queues")["items"]
    assert [each["name"] for each in found] == QUEUES
    return {each.pop("name"): each for each in found}


def _workers(ask, team):
    found = ask(team, "GET", "/v1/workers")["items"]
    return {each["name"]: each for each in found if each["name"] not in IN_PROCESS}


def test_tasks_are_counted_by_what_they_do_and_by_who_asked(service, ask):
    began = time.time()
    _submit(ask, "red", "variety")
    _submit(ask, "red", "variety", captions=[{**one, "caption": "w3"} for one in CAPTIONS])
    _submit(ask, "blue", "variety", captions=[{**one, "caption": "w4"} for one in CAPTIONS])
    for team, many in (("red", 2), ("blue", 1)):
        found = _queues(ask, team)["metrics"]
        assert 0 <= found.pop("oldest_seconds") <= time.time() - began
        assert found == {"waiting": 3, "running": 0, "yours": many}
    lease = leases.lease_first_task(service.records, "metrics", WORKER)
    assert lease is not None
    found = _queues(ask, "red")["metrics"]
    assert (found["waiting"], found["running"], found["yours"]) == (2, 1, 2)


def test_a_worker_shows_its_work_to_the_team_that_waits_for_it_until_its_lease_ends(service, ask):
    evaluation = _submit(ask, "red", "variety")
    began = time.time()
    lease = leases.lease_first_task(service.records, "metrics", WORKER)
    assert lease is not None
    mine = _workers(ask, "red")[WORKER]
    since = datetime.fromisoformat(mine.pop("since")).timestamp()
    assert since == pytest.approx(began, abs=1)
    assert mine == {
        "name": WORKER,
        "role": "metrics",
        "state": "busy",
        "task": {"name": "variety", "evaluation": evaluation["id"]},
    }
    theirs = _workers(ask, "blue")[WORKER]
    assert (theirs["state"], theirs["task"]) == ("busy", None)
    other = _submit(ask, "blue", "variety")
    assert _workers(ask, "blue")[WORKER]["task"]["evaluation"] == other["id"]
    assert _workers(ask, "red")[WORKER]["task"]["evaluation"] == evaluation["id"]
    ask("red", "POST", f"/v1/evaluations/{evaluation['id']}/cancel")
    assert _workers(ask, "red")[WORKER]["task"] is None
    assert _workers(ask, "blue")[WORKER]["task"]["evaluation"] == other["id"]
    with service.records.transaction() as connection:
        own = task_rows.update().where(task_rows.c.key == lease.key)
        connection.execute(own.values(lease_until=time.time() - 1))
    silent = _workers(ask, "blue")[WORKER]
    assert silent["state"] == "not_answering"


def test_of_two_tasks_the_one_that_was_begun_first_is_shown(service, ask):
    first = _submit(ask, "red", "variety")
    assert leases.lease_first_task(service.records, "metrics", WORKER)
    _submit(ask, "red", "variety", captions=[{**one, "caption": "w3"} for one in CAPTIONS])
    assert leases.lease_first_task(service.records, "metrics", WORKER)
    assert _workers(ask, "red")[WORKER]["task"]["evaluation"] == first["id"]


def test_of_a_run_that_is_no_evaluation_the_task_is_told_without_one(service, ask):
    asked = {"dataset": "tiny/test", "probes": ["human"], "metrics": ["rouge_l"]}
    probes = ask("red", "POST", "/v1/probes", json=asked)
    (name,) = (task["name"] for task in probes["tasks"] if task["status"] == "ready")
    assert any(leases.lease_first_task(service.records, queue, WORKER) for queue in QUEUES)
    assert _workers(ask, "red")[WORKER]["task"] == {"name": name, "evaluation": None}


def test_a_part_of_a_task_is_told_as_its_kind(service, ask):
    headers = {"Authorization": f"Bearer {service.texts['red']}"}
    with service.client() as client:
        client.headers.update(headers)
        digest = upload(client, checkpoint())
    decoding = {"beam": 60, "min_words": 900, "max_words": 1000}
    asked = {"dataset": "tiny/test", "checkpoint": digest, "pregen": [], "postgen": ["bleu_1"]}
    run = ask("red", "POST", "/v1/evaluations", json={**asked, "decoding": decoding})
    lease = leases.lease_first_task(service.records, "inference", "inference@a-host:8-0123abcd")
    assert lease is not None
    assert lease.kind == "captions"
    with service.records.reading() as connection:
        named = connection.execute(sa.select(run_tasks.c.task_key)).scalars().all()
    assert lease.key not in named
    told = _workers(ask, "red")["inference@a-host:8-0123abcd"]
    assert told["role"] == "inference"
    assert told["task"] == {"name": "captions", "evaluation": run["id"]}


def test_while_redis_does_not_answer_the_workers_are_not_known(service, monkeypatch):
    """Here is no Redis: its errors are as those of one that is away."""

    def away():
        raise redis.ConnectionError("connection refused")

    monkeypatch.setattr(service.parts.queue, "connected", away)
    with service.client() as client:
        headers = {"Authorization": f"Bearer {service.texts['red']}"}
        answer = client.get("/v1/workers", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert int(answer.headers["Retry-After"]) > 0
        assert client.get("/v1/queues", headers=headers).status_code == 200
