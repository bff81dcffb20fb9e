"""T65: searches for captions that would hold others up are refused, and no others."""

import json
from contextlib import contextmanager

import pytest
import sqlalchemy as sa

from helpers.fleet import bundle, checkpoint, upload
from helpers.service_here import service_here
from service.engine.tables import checkpoints


@contextmanager
def _described(service, client, vocabulary=50_000, size=2048):
    """A checkpoint of the record with the vocabulary and the size of a large model, and no tensors:
    what is refused is not read.
    """
    identity = upload(client, checkpoint(seed=1))
    own = checkpoints.c.digest == identity
    with service.records.transaction() as connection:
        text = connection.execute(sa.select(checkpoints.c.description).where(own)).scalar_one()
        changed = {**json.loads(text), "vocabulary_size": vocabulary}
        changed["config"]["size"] = size
        changed = json.dumps(changed)
        connection.execute(checkpoints.update().where(own).values(description=changed))
    service.hold()
    yield identity
    with service.records.transaction() as connection:
        connection.execute(checkpoints.update().where(own).values(description=text))


@pytest.fixture
def large(service, client):
    with _described(service, client) as identity:
        yield identity


def _submit(client, identity, beam, max_words):
    decoding = {"beam": beam, "max_words": max_words}
    request = {"checkpoint": identity, "dataset": "tiny/test", "postgen": ["bleu"], "pregen": []}
    return client.post("/v1/evaluations", json={**request, "decoding": decoding})


def test_one_image_must_not_take_minutes(client, large):
    answer = _submit(client, large, 100, 1000)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert answer.json()["errors"][0]["pointer"] == "/decoding"
    assert answer.json()["detail"] == (
        "of 40 images with a beam of 100 and 1,000 words, a vocabulary of 50,000 and size 2,048, "
        "each of 40 parts would take about 305 s; expected at most 15: lower `beam` or `max_words`"
    )


@pytest.mark.parametrize(("beam", "max_words"), [(3, 50), (10, 50), (3, 200), (1, 1000)])
def test_usual_searches_are_accepted_of_large_models_too(client, large, beam, max_words):
    assert _submit(client, large, beam, max_words).status_code == 202


@pytest.mark.long
def test_workers_that_are_faster_may_search_longer(tmp_path):
    """A GPU: the search of 305 s takes 10."""
    with service_here(tmp_path, speed=30) as fast, fast.client() as client:
        assert client.put("/v1/datasets/tiny", content=bundle(40)).status_code == 201
        with _described(fast, client) as identity:
            assert _submit(client, identity, 100, 1000).status_code == 202


@pytest.mark.parametrize(
    ("more", "name", "pointer"),
    [
        ({}, "columns", "/pregen"),
        ({"pregen": [], "postgen": ["bleu"], "tokens": {"top": 5}}, "tokens", "/tokens"),
    ],
)
def test_references_whose_part_would_not_end_in_time_are_refused(
    service, client, more, name, pointer
):
    with _described(service, client, 250_000, 60_000) as identity:
        request = {"checkpoint": identity, "dataset": "tiny/test", "postgen": [], **more}
        answer = client.post("/v1/evaluations", json=request)
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, pointer)
    assert answer.json()["detail"] == (
        "of 40 images with 3 references each, a vocabulary of 250,000 and size 60,000, each of 1 "
        f"part of {name} would take about 1,402 s; expected at most 900: take a smaller split, or "
        f"leave {pointer[1:]} out"
    )
