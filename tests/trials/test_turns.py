"""Turns of callers, in a real service: who submits much holds up nobody who submits little."""

import itertools
import time

import numpy as np
import pytest

from helpers import load_probes
from helpers.fleet import bundle, checkpoint, until_ended, upload
from helpers.submissions import submit

NUMBERS = itertools.count()


@pytest.fixture
def two(fleet):
    """Clients with two addresses."""
    with fleet.client_at("127.0.0.1") as one, fleet.client_at("127.0.0.2") as other:
        yield one, other


def _submit(client, dataset, images):
    """Captions that nobody has submitted before."""
    words = np.random.default_rng(next(NUMBERS)).integers(0, 1000, (images, 8))
    captions = [
        {"image": f"{place}.jpg", "caption": " ".join(f"w{word}" for word in row)}
        for place, row in enumerate(words.tolist())
    ]
    asked = {"captions": captions, "dataset": dataset, "postgen": ["bleu", "rouge_l"]}
    return submit(client, **asked, tokenizer="none")


@pytest.mark.slow
def test_eighty_one_submissions_hold_a_friend_up_by_seconds(fleet, two):
    """T63: her first score came after 40 s, and comes within one."""
    one, friend = two
    assert one.put("/v1/datasets/some", content=bundle(500)).status_code in (200, 201)
    until_ended(one, _submit(one, "some/test", 500), 60)
    with load_probes.served(fleet, "81 submissions"):
        for _ in range(81):
            _submit(one, "some/test", 500)
        began = time.monotonic()
        until_ended(friend, _submit(friend, "some/test", 500), 10)
        seconds = time.monotonic() - began
    print(f"T63 a friend's score after {seconds:.1f} s")
    assert seconds < 5


@pytest.mark.slow
def test_long_searches_delay_nobody_who_asks(fleet, client):
    """T65: of a large split, in some hundred parts, each time with another beam."""
    assert client.put("/v1/datasets/large", content=bundle(20_000)).status_code in (200, 201)
    identity = upload(client, checkpoint(seed=65))
    request = {"checkpoint": identity, "dataset": "large/test", "postgen": ["bleu"], "pregen": []}
    with load_probes.served(fleet, "long searches"):
        for beam in range(3, 13):
            decoding = {"beam": beam, "max_words": 400}
            answer = client.post("/v1/evaluations", json={**request, "decoding": decoding})
            assert answer.status_code == 202, answer.text
            canceled = client.post(f"{answer.headers['Location']}/cancel")
            assert canceled.status_code == 202, canceled.text
