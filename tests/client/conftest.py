import json

import pytest

import prescore
from client.scripted_service import ScriptedService
from prescore.http import retries


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(monkeypatch):
    for name in ("PRESCORE_URL", "PRESCORE_KEY", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


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
def bundle(tmp_path):
    """A folder with the captions of three images."""
    folder = tmp_path / "shapes"
    folder.mkdir()
    lines = [
        {"image": name, "split": split, "references": ["a red square", "a square"]}
        for name, split in (("a.jpg", "test"), ("7", "test"), ("c.jpg", "val"))
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "captions.jsonl").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def shapes(service, client, bundle):
    """The same bundle as a dataset of the service."""
    return client.add_dataset("shapes", bundle)


@pytest.fixture
def checkpoint(tmp_path):
    path = tmp_path / "epoch-08.safetensors"
    path.write_bytes(b"weight\0" * 1000)
    return path
