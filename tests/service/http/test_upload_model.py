"""Uploads against a model of them (T13): tests/fuzz/uploads.py has its rules.

PRESCORE_FUZZ_SECONDS=3600 python -m pytest tests/service/http/test_upload_model.py -s
"""

import os
import time

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from hypothesis.stateful import run_state_machine_as_test

from fuzz.harnesses import CORPUS
from fuzz.uploads import Uploads, right
from helpers.fleet import digest

SECONDS = float(os.environ.get("PRESCORE_FUZZ_SECONDS", "600"))
STORIES = DirectoryBasedExampleDatabase(CORPUS / "uploads")


@pytest.fixture
def machine(service, client):
    known = right()
    assert client.put(f"/v1/checkpoints/{digest(known)}", content=known).status_code == 201
    return type("UploadsHere", (Uploads,), {"service": service, "known": known})


def _tried(machine, examples, steps, **more):
    given = settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        **more,
    )
    run_state_machine_as_test(machine, settings=given)


def test_the_service_answers_as_the_model(service, machine):
    _tried(machine, 4, 10)
    assert not service.leftovers()


@pytest.mark.slow
def test_the_service_answers_as_the_model_for_long(service, machine):
    """What fails is kept in tests/fuzz/corpus/uploads, and tried first the next time."""
    until, rounds = time.monotonic() + SECONDS, 0
    while time.monotonic() < until:
        _tried(machine, 50, 40, derandomize=False, database=STORIES)
        rounds += 1
    print(f"T13 {rounds} rounds of 50 stories of up to 40 requests")
    assert not service.leftovers()
