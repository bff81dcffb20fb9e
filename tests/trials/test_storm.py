"""T27: processes die at random while evaluations run; every one ends, with the right scores."""

import contextlib
import random
import time

import httpx
import psutil
import pytest
import sqlalchemy as sa

from fleet import Fleet, bundle, checkpoint, until, until_ended, upload
from service.works.tables import runs, work_rows

VICTIMS = ("api", "worker", "workers.runtime.child", "janitor", "redis-server")
SECONDS, RUNS = 60, 60  # of a storm


def _post(fleet, checkpoint_, number):
    """As a client does: the same key again until somebody answers."""
    request = {
        "checkpoint": checkpoint_,
        "dataset": "tiny/test",
        "postgen": [],
        "labels": {"n": str(number)},
    }

    def answered():
        with contextlib.suppress(httpx.HTTPError), fleet.client() as client:
            headers = {"Idempotency-Key": f"storm-{number}"}
            answer = client.post("/v1/evaluations", json=request, headers=headers)
            return answer.json()["id"] if answer.status_code == 202 else None
        return None

    return until(answered, 60, "an answer")


def _victim(fleet, rng):
    family = [process for process in fleet.family() if process.is_running()]
    named = []
    for process in family:
        with contextlib.suppress(psutil.Error):
            words = (process.name(), *process.cmdline())
            named += [process for word in VICTIMS if word in words]
    return rng.choice(named) if named else None


def test_each_process_is_killed_once_and_nothing_is_lost(fleet, serve_here, tmp_path):
    with fleet.client() as client:
        identities = [upload(client, checkpoint(seed=at)) for at in range(len(VICTIMS))]
    golden = _golden(serve_here, tmp_path, identities)
    submitted = []
    for number, (word, identity) in enumerate(zip(VICTIMS, identities, strict=True)):
        submitted.append(_post(fleet, identity, number))
        if fleet.embedded or word != "redis-server":  # another Redis is not ours to kill
            fleet.find(word).kill()
    until(lambda: _answers(fleet), 20, "the API")
    with fleet.client() as client:
        for number, identity in enumerate(submitted):
            found = until_ended(client, identity, 40)
            assert found["status"] == "succeeded", found
            assert found["scores"] == golden[number]
    until(lambda: not fleet.leftovers(), 20, "the janitor, which sweeps what the dead have left")


@pytest.mark.slow
def test_a_storm_of_kills_loses_nothing(tmp_path, serve_here):
    rng = random.Random(SECONDS)
    fleet = Fleet(tmp_path / "home").start()
    try:
        with fleet.client() as client:
            client.put("/v1/datasets/tiny", content=bundle(40))
            identities = [upload(client, checkpoint(seed=at)) for at in range(RUNS)]
        golden = _golden(serve_here, tmp_path, identities)
        submitted = {}
        ends = time.monotonic() + SECONDS
        next_kill = time.monotonic() + 1
        while time.monotonic() < ends or len(submitted) < RUNS:
            if len(submitted) < RUNS:
                number = len(submitted)
                submitted[number] = _post(fleet, identities[number], number)
            if time.monotonic() > next_kill and time.monotonic() < ends:
                next_kill += 2
                victim = _victim(fleet, rng)
                if victim is not None:
                    with contextlib.suppress(psutil.Error):
                        victim.kill()
            time.sleep(0.05)
        _all_ended(fleet, RUNS)
        until(lambda: _answers(fleet), 20, "the API, which may have been the last to be killed")
        with fleet.client() as client:
            for number, identity in submitted.items():
                found = client.get(f"/v1/evaluations/{identity}").json()
                assert found["status"] == "succeeded", found
                assert found["scores"] == golden[number]
        _nothing_leaked(fleet)
    finally:
        fleet.stop()


def _answers(fleet):
    with contextlib.suppress(httpx.HTTPError), fleet.client() as client:
        return client.get("/readyz").status_code == httpx.codes.OK
    return False


def _golden(serve_here, folder, identities):
    """The same checkpoints on a service that nobody disturbs: one in this process."""
    with serve_here(folder / "calm") as calm, calm.client() as client:
        client.put("/v1/datasets/tiny", content=bundle(40))
        scores = {}
        for number, identity in enumerate(identities):
            upload(client, checkpoint(seed=number))
            request = {"checkpoint": identity, "dataset": "tiny/test", "postgen": []}
            answer = client.post("/v1/evaluations", json=request, headers={"Prefer": "wait=30"})
            scores[number] = answer.json()["scores"]
    return scores


def _all_ended(fleet, count):
    def ended():
        with fleet.records.reading() as connection:
            query = sa.select(sa.func.count()).where(runs.c.finished_at.is_not(None))
            return connection.execute(query).scalar_one() == count

    until(ended, 60, "the end of every evaluation")


def _nothing_leaked(fleet):
    with fleet.records.reading() as connection:
        statuses = set(connection.execute(sa.select(work_rows.c.status)).scalars())
        leases = set(connection.execute(sa.select(work_rows.c.lease_until)).scalars())
    assert statuses == {"done"}
    assert leases == {None}
    until(lambda: not fleet.leftovers(), 20, "the janitor, which sweeps what the dead have left")
