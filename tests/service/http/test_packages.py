"""T41: checkpoints that come as another program saved them, a state dict with its map and words."""

import io
import json
import pickle
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

import commanding
import public_captioners as public
from fleet import bundle_of, digest, upload
from torch_captioners import FEATURES, WORDS, made, map_of, packed, saved, with_encoder
from workers.sandbox import confinement

pytestmark = [pytest.mark.processes]

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
    answer = client.post("/v1/evaluations", json=request)
    assert answer.status_code in (201, 202), answer.text
    return client.get(f"/v1/evaluations/{answer.json()['id']}").json()


@pytest.fixture(autouse=True)
def needs_sandbox():
    if lacking := confinement.explain_missing_sandbox():
        pytest.skip(lacking)


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
    from service.contract.formats import map_files
    from torch_captioners import arrays
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
    tokens = [client.get(f"/v1/evaluations/{run['id']}/tokens/0.jpg").json() for run in runs]
    assert tokens[0]["captions"]
    assert tokens[0]["captions"] == tokens[1]["captions"]


@pytest.mark.slow
def test_a_state_dict_that_looks_at_places_is_scored_by_a_map(service, client):
    """What it looks at is known before it is converted, and a dataset of vectors is refused."""
    from service.contract.formats import map_files
    from torch_captioners import arrays
    from workers.conversion import proposal

    model = public.made(public.ShowAttendAndTell)
    given = with_encoder(proposal.propose_map(arrays(model), public.WORDS))
    assert map_files.parse_map(given).inputs == "grid"
    content = packed(state_dict(model, **{"map.toml": given.encode()}))
    with service.held():
        told = put(client, content).json()
        assert (told["state"], told["inputs"]) == ("converting", "grid")
        request = {"dataset": "seven/test", "checkpoint": digest(content)}
        refused = client.post("/v1/evaluations", json=request)
    assert refused.status_code == 422
    assert "takes features of a grid's places" in refused.json()["detail"]
    found = described(client, content)
    assert (found["state"], found["problem"]) == ("ready", None)
    assert (found["architecture"], found["inputs"]) == ("soft_attention", "grid")
    sizes = {name: found["config"][name] for name in ("size", "embedding_size", "attention_size")}
    assert sizes == {"size": 5, "embedding_size": 6, "attention_size": 3}
    places = public.features(model, IMAGES)
    people = {f"{at}.jpg": ["a dog runs fast", "red zebra"] for at in range(IMAGES)}
    answer = client.put("/v1/datasets/places", content=bundle_of(people, places.numpy()))
    assert answer.status_code == 201, answer.text
    run = evaluated(client, digest(content), dataset="places/test", pregen=["mean_mean_pplx_none"])
    assert run["status"] == "succeeded", run
    ids, start, end, unknown = public.ids(public.WORDS)
    perplexities = []
    for image in places:
        for caption in ("a dog runs fast", "red zebra"):
            words = [ids.get(word, unknown) for word in caption.split()]
            logp = model(image, [start, *words])[range(len(words) + 1), [*words, end]]
            perplexities.append(float(np.exp(-logp.mean().item())))
    found = run["scores"]["mean_mean_pplx_none"]["value"]
    assert found == pytest.approx(np.mean(perplexities), rel=1e-5)


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


def test_an_expanded_tensor_is_invalid_with_its_remedy(client):
    import torch

    buffer = io.BytesIO()
    torch.save({"weight": torch.ones(1).expand(20_000, 30_000)}, buffer)
    content = packed(state_dict(**{"model.pt": buffer.getvalue()}))
    assert put(client, content).status_code == 201
    problem = described(client, content)["problem"]
    assert problem["code"] == "invalid_checkpoint"
    assert "'weight' has 600,000,000 elements, and the file stores 1 of them" in problem["detail"]


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"map.toml": b"architecture = 3"}, r"map, architecture: "),
        ({"map.toml": map_of("init").encode()}, "map.toml: expected [encoder]"),
        ({"vocabulary.json": b'["a", "b"]'}, "map, words.start: the vocabulary has no word"),
        ({"vocabulary.json": b"[1]"}, "vocabulary: expected a list of words"),
        ({"model.pth": b"x"}, "expected one file with the model's tensors"),
        ({"model.pt": b"\x89HDF\r\n\x1a\n"}, "found an HDF5 file"),
    ],
)
def test_what_needs_no_tensors_is_refused_at_once(client, files, told):
    content = packed(state_dict(**files))
    answer = put(client, content)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_checkpoint")
    assert told in answer.json()["detail"]
    assert client.head(f"/v1/checkpoints/{digest(content)}").status_code == 404


@pytest.mark.parametrize("pack", [packed, zipped])
def test_a_package_of_something_else_says_what_it_is(client, pack):
    answer = put(client, pack({"readme.txt": b"hello", "weights.h5": b"x"}))
    assert answer.status_code == 422
    assert "A package of a state dict has the model's tensors, map.toml" in answer.json()["detail"]
    assert "readme.txt" in answer.json()["detail"]


def test_a_state_dict_alone_is_refused_before_the_rest_is_sent(client):
    content = saved(made("init", "lstm")) + bytes(1 << 20)
    answer = put(client, content)
    assert answer.status_code == 422
    assert "deploy/guide/converting.md" in answer.json()["detail"]


def test_without_a_sandbox_nothing_is_opened_and_the_next_upload_tries_again(client, monkeypatch):
    content = packed(state_dict(made("pre", "lstm"), **{"map.toml": PRE.encode()}))
    with monkeypatch.context() as at:
        at.setattr(confinement, "explain_missing_sandbox", lambda: "this kernel has no Landlock")
        assert put(client, content).status_code == 201
    found = described(client, content)
    assert (found["state"], found["problem"]["code"]) == ("invalid", "sandbox_unavailable")
    assert "this kernel has no Landlock" in found["problem"]["detail"]
    assert put(client, content).json()["state"] == "ready"


@pytest.mark.slow
def test_a_folder_is_submitted_and_checked_by_the_commands(service, tmp_path):
    for name, data in {**state_dict(), "notes.rst": b"not sent"}.items():
        (tmp_path / name).write_bytes(data)
    told = CliRunner().invoke(commanding.prescore(), ["check", str(tmp_path)])
    assert told.exit_code == 0, told.output
    assert "format:            pytorch" in told.stdout
    asked = ["submit", str(tmp_path), "--dataset", "seven/test", "--postgen", "none", "--json"]
    done = CliRunner().invoke(commanding.prescore(), [*asked, "--wait", "--url", service.url])
    assert done.exit_code == 0, done.output
    assert "left out of the package: notes.rst" in done.output
    with service.client() as client:
        checkpoint = json.loads(done.stdout)["checkpoint"]
        assert client.get(f"/v1/checkpoints/{checkpoint}").json()["format"] == "pytorch"
