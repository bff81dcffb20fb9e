"""Waiting for an evaluation (T04, T05): `Prefer: wait`, and long polls.

In process: who waits is told by the application, which looks at the record; here it is held until
somebody waits, so that a wait never ends because the task was quick.
"""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from helpers.fleet import checkpoint, upload

SEEDS = itertools.count(3000)


def _request(client, **more):
    identity = upload(client, checkpoint(seed=next(SEEDS)))
    return {"checkpoint": identity, "dataset": "tiny/test", "postgen": [], **more}


def _post(client, request, seconds):
    return client.post("/v1/evaluations", json=request, headers={"Prefer": f"wait={seconds}"})


@pytest.mark.long
def test_what_takes_longer_is_answered_when_the_wait_is_over_and_goes_on(service, client):
    """T04: 202 at N ± 0.5 s."""
    request, seconds = _request(client), 1
    with service.held():
        began = time.monotonic()
        answer = _post(client, request, seconds)
        assert abs(time.monotonic() - began - seconds) < 0.5
        assert answer.status_code == 202
        assert answer.headers["Preference-Applied"] == f"wait={seconds}"
        assert answer.json()["status"] == "queued"
    ended = client.get(f"/v1/evaluations/{answer.json()['id']}").json()
    assert ended["status"] == "succeeded"


@pytest.mark.long
def test_a_client_that_hangs_up_while_it_waits_changes_nothing(service, client):
    """T04."""
    request = _request(client, labels={"who": "hung up"})
    with service.held(), service.client() as impatient, pytest.raises(httpx.ReadTimeout):
        impatient.post("/v1/evaluations", json=request, headers={"Prefer": "wait=30"}, timeout=0.2)
    items = client.get("/v1/evaluations", params={"label.who": "hung up"}).json()["items"]
    assert [item["status"] for item in items] == ["succeeded"]


def test_a_long_poll_answers_with_the_new_version_though_the_old_one_is_kept(service, client):
    with ThreadPoolExecutor(1) as pool, service.held():
        answer = _post(client, _request(client), 0)
        address, identity = answer.headers["Location"], answer.json()["id"]
        tag = client.get(address).headers["ETag"]
        client.get(address)  # from here on the service keeps these bytes
        waiting = pool.submit(_waited_for, service, address, tag)
        service.until_awaited(identity)
        client.post(f"{address}/cancel")
        changed = waiting.result()
    assert changed.headers["ETag"] != tag
    assert changed.json()["status"] == "canceled"


def test_who_waits_without_a_version_waits_for_the_end(service, client):
    with ThreadPoolExecutor(1) as pool:
        with service.held():
            answer = _post(client, _request(client), 0)
            waiting = pool.submit(_waited_for, service, answer.headers["Location"])
            service.until_awaited(answer.json()["id"])
        ended = waiting.result()
    assert ended.json()["status"] == "succeeded"
    assert ended.headers["Preference-Applied"] == "wait=20"


def _waited_for(service, address, tag=None):
    known = {} if tag is None else {"If-None-Match": tag}
    with service.client() as client:
        return client.get(address, headers={**known, "Prefer": "wait=20"}, timeout=30)
