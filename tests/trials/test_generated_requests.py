"""T01, T54: requests that are made up, right and wrong: each is answered as openapi.json says, none
with an error of the service, none late, none accepted that openapi.json refuses, and the memory of
the API does not grow.

GENERATED_SECONDS=1200 python -m pytest tests/trials/test_generated_requests.py -s
"""

import collections
import os
import time

import httpx
import pytest

from helpers import interface
from helpers.fleet import checkpoint, upload
from helpers.random_requests import Requests

SECONDS = float(os.environ.get("GENERATED_SECONDS", "60"))
SEED = int(os.environ.get("GENERATED_SEED", "1"))
LATEST = 2.0  # seconds


@pytest.mark.slow
def test_whatever_is_asked_is_answered_soon_and_in_little_memory(fleet):
    api = fleet.find("api")
    with httpx.Client(base_url=fleet.url, timeout=60) as client:
        digest = upload(client, checkpoint())
        images = [f"{index}.jpg" for index in range(40)]
        known = {
            "checkpoint": [digest],
            "digest": [digest],
            "dataset": ["tiny/test", "tiny@v1/test", "tiny"],
            "name": ["tiny"],
            "reference": ["tiny", "tiny@v1"],
            "metric": ["cider_d", "bleu_4", "mean_pplx_none"],
            "postgen": [["bleu_1"], []],
            "image": images,
            "id": ["ev_0"],
            "deadline": [60],
            "captions": [[{"image": image, "caption": "a dog"} for image in images]],
        }
        seen = collections.Counter()
        latest, slowest, memory = 0.0, None, []
        requests = Requests(SEED, known)
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            method, address, headers, body = requests.one()
            told = f"seed {SEED}, request {seen.total()}: {method} {address} {body[:500]!r}"
            began = time.monotonic()
            answer = client.request(method, address, headers=headers, content=body)
            seconds = time.monotonic() - began
            if seconds > latest:
                latest, slowest = seconds, told
            assert answer.status_code < 500, (told, answer.text[:500])
            try:
                interface.check(answer)
                assert answer.is_error or not interface.is_wrong(answer.request)
            except AssertionError as error:
                raise AssertionError(told) from error
            seen[answer.status_code] += 1
            if answer.status_code == 202 and "id" in (found := answer.json()):
                known["id"] = [*known["id"], found["id"]][-50:]
            if seen.total() % 200 == 0:
                memory.append(api.memory_info().rss)
    early, late = memory[len(memory) // 4], memory[-1]
    print(
        f"T54 {seen.total()} requests, {dict(seen)}: at most {latest:.2f} s ({slowest:.200}), "
        f"memory {early >> 20} to {late >> 20} MB"
    )
    assert latest < LATEST, slowest
    assert late - early < 60_000_000
