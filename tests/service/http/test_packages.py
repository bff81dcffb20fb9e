"""T41: checkpoints that come as another program saved them, a state dict with its map and words."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest

from helpers.fleet import bundle_of, digest, upload
from helpers.submissions import submit
from helpers.tars import packed
from helpers.torch_captioners import FEATURES, WORDS, made, map_of, saved, with_encoder
from service.kernel import confinement

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("sandbox")]

IMAGES = 12
MAP, MERGE = with_encoder(map_of("init")), with_encoder(map_of("merge"))
PRE = with_encoder(map_of("pre"))


def state_dict(model=None, name="model.pt", **files):
    model = model or made("init", "lstm")
    return {
        name: saved(model),
        "map.toml": MAP.encode(),
        "vocabulary.json": json.dumps(WORDS).encode(),
        **files,
    }


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def put(client, content):
    return client.put(f"/v1/checkpoints/{digest(content)}", content=content)


def described(client, content):
    return client.get(f"/v1/checkpoints/{digest(content)}").json()


def evaluated(client, checkpoint, **asked):
    request = {"dataset": "seven/test", "checkpoint": checkpoint, "postgen": ["bleu_1"], **asked}
    return client.get(f"/v1/evaluations/{submit(client, **request)}").json()


@pytest.fixture(scope="module", autouse=True)
def dataset(service):
    rng = np.random.default_rng(3)
    people = {
        f"{at}.jpg": [" ".join(rng.choice(WORDS[2:4] + WORDS[5:6] + WORDS[7:], 4)) for _ in "123"]
        for at in range(IMAGES)
    }
    rows = rng.normal(size=(IMAGES, FEATURES)).astype(np.float32)
    with service.client() as client:
        answer = client.put("/v1/datasets/seven", content=bundle_of(people, rows))
        assert answer.status_code == 201, answer.text


def canonical(tmp_path, client):
    """The same network, converted by the command's own functions and brought in our own form."""
    from helpers.torch_captioners import arrays
    from service.contract.formats import map_files
    from workers.conversion import canonical_checkpoints

    given = map_files.parse_map(MAP)
    made_of = canonical_checkpoints.convert_tensors(
        arrays(made("init", "lstm")), WORDS, given, given.encoder
    )
    canonical_checkpoints.write_canonical(tmp_path / "model.safetensors", *made_of)
    return upload(client, (tmp_path / "model.safetensors").read_bytes())


@pytest.mark.parametrize("pack", [packed, pytest.param(zipped, marks=pytest.mark.slow)])
def test_a_state_dict_scores_as_the_same_network_in_our_own_form(client, tmp_path, pack):
    content = pack(state_dict())
    answer = put(client, content)
    assert answer.status_code == 201, answer.text
    found = described(client, content)
    assert (found["format"], found["state"], found["problem"]) == ("pytorch", "ready", None)
    assert (found["architecture"], found["vocabulary_size"]) == ("init", len(WORDS))
    assert found["config"]["feature_size"] == FEATURES
    ours, theirs = canonical(tmp_path, client), digest(content)
    runs = [evaluated(client, one, pregen="all") for one in (ours, theirs)]
    assert [run["status"] for run in runs] == ["succeeded", "succeeded"]
    pregen = [client.get(f"/v1/evaluations/{run['id']}/pregen").json()["scores"] for run in runs]
    assert pregen[0] == pregen[1]
    assert runs[0]["scores"]["bleu_1"]["value"] == runs[1]["scores"]["bleu_1"]["value"]
    again = described(client, content)
    assert [one["dataset"] for one in again["cached"]] == ["seven@v1/test"]


@pytest.mark.parametrize("pack", [pytest.param(packed, marks=pytest.mark.slow), zipped])
def test_a_package_that_arrives_in_pieces_is_judged_when_all_of_it_is_there(service, client, pack):
    content = pack(state_dict(**{"vocabulary.json": json.dumps(WORDS).encode() + b" " * 3_000_000}))
    pieces = (content[at : at + 50_000] for at in range(0, len(content), 50_000))
    with service.held():
        place, length = f"/v1/checkpoints/{digest(content)}", {"Content-Length": str(len(content))}
        answer = client.put(place, content=pieces, headers=length)
    assert answer.status_code == 201, answer.text
    assert answer.json()["architecture"] == "init"


def test_an_evaluation_waits_for_the_conversion_and_tells_its_progress(service, client):
    content = packed(state_dict(made("merge", "torch_gru"), **{"map.toml": MERGE.encode()}))
    with service.held():
        assert put(client, content).json()["state"] == "converting"
        assert described(client, content)["config"] is None
        begun = evaluated(client, digest(content))
        tasks = {task["name"]: task["status"] for task in begun["tasks"]}
        assert (tasks["checkpoint"], tasks["columns"]) == ("ready", "waiting")
    done = client.get(f"/v1/evaluations/{begun['id']}").json()
    assert done["status"] == "succeeded", done["tasks"]
    assert described(client, content)["state"] == "ready"
    assert put(client, content).status_code == 200


def test_a_model_that_does_not_fit_its_map_is_invalid_and_is_not_tried_again(service, client):
    content = packed(state_dict(made("merge", "lstm")))
    assert put(client, content).status_code == 201
    found = described(client, content)
    assert found["state"] == "invalid"
    assert found["problem"]["code"] == "invalid_checkpoint"
    answer = client.post(
        "/v1/evaluations", json={"dataset": "seven/test", "checkpoint": digest(content)}
    )
    assert answer.status_code == 422
    assert found["problem"]["detail"] in answer.json()["detail"]
    assert answer.json()["errors"][0]["pointer"] == "/checkpoint"
    with service.held():
        assert put(client, content).json()["state"] == "invalid"


def test_an_evaluation_that_waits_fails_with_what_is_wrong_with_the_model(service, client):
    content = packed(state_dict(made("merge", "torch_gru")))
    with service.held():
        put(client, content)
        begun = evaluated(client, digest(content))
    ended = client.get(f"/v1/evaluations/{begun['id']}").json()
    assert (ended["status"], ended["error"]["code"]) == ("failed", "invalid_checkpoint")


def test_a_pickle_that_would_run_code_is_invalid_and_does_not_run(client, tmp_path):
    canary = tmp_path / "canary"

    class Hostile:
        def __reduce__(self):
            return (open, (str(canary), "w"))

    import torch

    buffer = io.BytesIO()
    torch.save({"weight": torch.ones(1), "more": Hostile()}, buffer, pickle_module=pickle)
    content = packed(state_dict(**{"model.pt": buffer.getvalue()}))
    assert put(client, content).status_code == 201
    assert described(client, content)["problem"]["code"] == "invalid_checkpoint"
    assert not canary.exists()


def test_without_a_sandbox_nothing_is_opened_and_the_next_upload_tries_again(client, monkeypatch):
    content = packed(state_dict(made("pre", "lstm"), **{"map.toml": PRE.encode()}))
    with monkeypatch.context() as at:
        at.setattr(confinement, "explain_missing_sandbox", lambda: "this kernel has no Landlock")
        assert put(client, content).status_code == 201
    found = described(client, content)
    assert (found["state"], found["problem"]["code"]) == ("invalid", "sandbox_unavailable")
    assert "this kernel has no Landlock" in found["problem"]["detail"]
    assert put(client, content).json()["state"] == "ready"
