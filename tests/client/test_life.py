"""The client and its commands change and delete, and say who did: against a real service."""

import json

import pytest
from typer.testing import CliRunner

import prescore
from helpers import command_app
from helpers.fleet import bundle, checkpoint
from helpers.service_here import service_here


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with service_here(tmp_path_factory.mktemp("home")) as service:
        with service.client() as client:
            client.put("/v1/datasets/tiny", content=bundle(40))
        yield service


@pytest.fixture
def client(service):
    with prescore.Client(service.url) as client:
        yield client


@pytest.fixture
def identity(client):
    captions = {str(900 + n): "w2 w3" for n in range(40)}
    asked = {"captions": captions, "postgen": ["bleu_1"], "labels": {"run": "7"}}
    return client.wait(client.submit("tiny/test", **asked).id, timeout=60).id


def _command(service, *words):
    return CliRunner().invoke(command_app.prescore(), [*words, "--url", service.url])


def test_labels_and_notes_are_changed(client, identity):
    changed = client.change(identity, labels={"branch": "main", "run": None}, note="half")
    assert (changed.note, changed.status) == ("half", "succeeded")
    assert client.evaluation(identity).labels == {"branch": "main"}
    assert client.change(identity, note="").note is None
    with pytest.raises(prescore.InvalidArgument, match="labels or a note"):
        client.change(identity)


def test_everything_that_is_sent_is_deleted(client, identity, tmp_path):
    file = tmp_path / "model.safetensors"
    file.write_bytes(checkpoint(seed=99))
    digest = client.upload_checkpoint(file)
    client.delete_checkpoint(digest)
    assert not client.has_checkpoint(digest)
    with pytest.raises(prescore.Refused, match="is needed by"):
        client.delete_dataset("tiny@v1")
    client.delete_evaluation(identity)
    with pytest.raises(prescore.Refused, match="no evaluation"):
        client.delete_evaluation(identity)
    (change,) = client.audit(action="run.deleted", of=identity)
    assert (change.object, change.address) == (identity, "127.0.0.1")


def test_commands_label_delete_and_tell_who_did(service, client, identity):
    labelled = _command(
        *(service, "label", identity, "branch=main", "--remove", "run", "--note", "half")
    )
    assert labelled.exit_code == 0, labelled.output
    assert "branch=main" in labelled.output
    assert client.evaluation(identity).note == "half"
    assert _command(service, "label", identity).exit_code == 2
    assert _command(service, "delete", identity).exit_code == 0
    assert _command(service, "delete", identity).exit_code == 2
    told = json.loads(_command(service, "audit", "--of", identity, "--json").stdout)
    assert [change["action"] for change in told] == ["run.deleted", "run.changed"]
    shown = _command(service, "audit", "--action", "run.deleted", "--limit", "1")
    assert identity in shown.output
    client.add_dataset("passing", _bundle(service))
    assert _command(service, "datasets", "delete", "passing").exit_code == 0


def _bundle(service):
    path = service.home / "passing.tar"
    path.write_bytes(bundle(7))
    return path
