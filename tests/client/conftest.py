import itertools
import json
import os

import pytest
from typer.testing import CliRunner

import prescore
from client.scripted_service import ScriptedService
from helpers import command_app, fleet
from prescore.files import bodies
from prescore.http import resumable_uploads, retries

SETTINGS = ("PRESCORE_URL", "PRESCORE_KEY", "HTTP_PROXY", "http_proxy", "ALL_PROXY")
SEEDS = itertools.count(9000)
OF_A_JOB = ("GITHUB_", "CI_", "GIT_", "ACTIONS_", "PRESCORE_ID", "PRESCORE_AUD")


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch):
    for name in list(os.environ):
        if name in SETTINGS or name.startswith(OF_A_JOB):
            monkeypatch.delenv(name)


@pytest.fixture
def quick(monkeypatch):
    """Short pauses between attempts, so that ten of them fit into a test."""
    monkeypatch.setattr(retries, "FIRST_SECONDS", 0.01)
    monkeypatch.setattr(retries, "LONGEST_SECONDS", 0.05)


@pytest.fixture
def service():
    with ScriptedService() as service:
        yield service


@pytest.fixture
def client(service, quick):
    with prescore.Client(service.url, patience=5) as client:
        yield client


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "epoch-08.safetensors"
    path.write_bytes(b"weight\0" * 1000)
    return path


@pytest.fixture
def all_are_large(monkeypatch, quick):
    """Checkpoints of tests, which are then uploaded in chunks that may go on."""
    monkeypatch.setattr(resumable_uploads, "LARGE_BYTES", 100)
    monkeypatch.setattr(bodies, "CHUNK_BYTES", 1000)


@pytest.fixture
def file(tmp_path):
    """A checkpoint that no other test has."""
    path = tmp_path / "epoch-08.safetensors"
    path.write_bytes(fleet.checkpoint(seed=next(SEEDS)))
    return path


@pytest.fixture
def captions(tmp_path):
    path = tmp_path / "results.json"
    items = [{"image": "a.jpg", "caption": "a red square"}, {"image_id": 7, "caption": "a"}]
    path.write_text(json.dumps(items))
    return path


@pytest.fixture(name="prescore")
def run_prescore(service, quick, monkeypatch):
    """Runs a command in this process, against the service."""
    monkeypatch.setenv("PRESCORE_URL", service.url)
    app = command_app.prescore()
    return lambda *arguments: CliRunner().invoke(app, list(map(str, arguments)))
