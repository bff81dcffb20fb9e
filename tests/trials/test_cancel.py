"""T31: cancel while tasks wait, run and finish: one final state, soon, and for good."""

import itertools
import random
import time

import pytest
import sqlalchemy as sa

from helpers.fleet import checkpoint, until, until_ended, upload
from helpers.submissions import submit
from service.engine import history
from service.engine.tables import task_rows

SEEDS = itertools.count(8000)
RACES = 200


def _submit(client, identity):
    return submit(client, checkpoint=identity, postgen=["rouge_l"])


@pytest.mark.slow  # at one moment: test_workers.py
def test_canceling_at_any_moment_ends_in_one_final_state(fleet, client):
    rng = random.Random(RACES)
    for _ in range(2):  # the first one also starts what is cold
        began = time.monotonic()
        calm = _submit(client, upload(client, checkpoint(seed=next(SEEDS))))
        until_ended(client, calm, 60)
        usual = time.monotonic() - began
    finals = []
    for race in range(RACES):
        moment = (race + rng.random()) / RACES  # any moment of its life: each part of it is met
        identity = upload(client, checkpoint(seed=next(SEEDS)))
        mine = _submit(client, identity)
        shared = _submit(client, identity) if race % 5 == 0 else None
        time.sleep(1.2 * usual * moment)  # the race itself
        answer = client.post(f"/v1/evaluations/{mine}/cancel")
        assert answer.status_code == 202
        final = until_ended(client, mine, 5)
        finals.append((mine, final["status"]))
        if shared is not None:
            assert until_ended(client, shared, 60)["status"] == "succeeded"
    for identity, status in finals:
        assert client.get(f"/v1/evaluations/{identity}").json()["status"] == status
        assert status in ("succeeded", "canceled")
    assert len({status for _, status in finals}) == 2  # both happened
    with fleet.records.reading() as connection:
        for identity, _ in finals:
            told = [event.kind for event in history.read_events_after(connection, identity, 0)]
            assert told.count("end") == 1

    def left():
        with fleet.records.reading() as connection:
            query = sa.select(task_rows.c.key).where(task_rows.c.status == "running")
            return connection.execute(query).all()

    until(lambda: not left(), 10, "no task is running")
