"""Metrics trained in a service: from its evaluations and from captions, polled, canceled, fetched,
and asked for by name. Oracles: the file that is fetched, scored here; and what the command line
makes of the same captions.

In process: what a model is made of and called is decided by rules and jobs.
"""

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
import safetensors
from typer.testing import CliRunner

from helpers import command_app
from helpers.builders import sentence
from helpers.fleet import bundle_of, until_ended
from helpers.submissions import finish, run_command, serve_datasets, submit
from service.contract.assets import AssetFolders
from workers.metrics import postgen, references
from workers.metrics.java.jvm import Jvm
from workers.metrics.learned import nneval
from workers.offline import assets

WORDS = ["a", "the", "man", "dog", "cat", "runs", "sits", "on", "grass", "big"]
RNG = np.random.default_rng(0)
IMAGES = [f"{number}.jpg" for number in range(60)]
FEATURES = ["bleu_1", "bleu_4", "cider_d"]


def _people():
    """Who says the same of an image, more or less."""
    words = list(RNG.choice(WORDS, 5))
    return [" ".join([*words, *RNG.choice(WORDS, 2)]) for _ in range(5)]


PEOPLE = {image: _people() for image in IMAGES}
SAID = [
    [{"image": image, "caption": sentence(RNG, WORDS, 8)} for image in IMAGES] for _ in range(3)
]
RATED = [
    {
        "image": f"{number}_x.jpg",
        "candidate": caption,
        "references": said[2:],
        "ratings": ratings,
    }
    for number in range(100, 130)
    for said in [_people()]
    for caption, ratings in ((said[0], [4, 3.5]), (sentence(RNG, WORDS, 8), [1, 2]))
]
SMALL = {"dataset": "tiny/test", "features": FEATURES, "tokenizer": "none", "epochs": 5}


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    tiny = bundle_of(PEOPLE, training=["a man runs"])
    theirs = bundle_of({"5_z.jpg": ["a"]})
    yield from serve_datasets(serve_here, tmp_path_factory, tiny=tiny, theirs=theirs)


@pytest.fixture(scope="module")
def client(service):
    with service.client() as client:
        yield client


def _captioners(**of_the_first):
    given = [{"name": f"m{at}", "captions": said} for at, said in enumerate(SAID)]
    return [given[0] | of_the_first, *given[1:]]


def _submitted(client, **more):
    answer = client.post("/v1/learned", json={"captioners": _captioners(), **SMALL, **more})
    assert answer.status_code == 202, answer.text
    assert answer.headers["Location"] == f"/v1/learned/{answer.json()['id']}"
    return answer.json()["id"]


def _ended(client, identity):
    return finish(client, f"/v1/learned/{identity}")


def _trained(client, **more):
    found = _ended(client, _submitted(client, **more))
    assert found["status"] == "succeeded", found["error"]
    return found


def _fetched(client, identity, path):
    answer = client.get(f"/v1/learned/{identity}/model")
    assert answer.status_code == 200
    path.write_bytes(answer.content)
    return nneval.read_nneval(path)


def _evaluate(client, said=SAID[0], **more):
    return until_ended(client, submit(client, captions=said, tokenizer="none", **more), 60)


@pytest.fixture(scope="module")
def first(client):
    """From people's ratings, a captioner by its evaluation, and captions."""
    evaluation = _evaluate(client, postgen=["bleu_1"])
    by_evaluation = {"name": "m0", "evaluation": evaluation["id"], "trained_on": "tiny/train"}
    captioners = [by_evaluation, *_captioners()[1:]]
    return _trained(client, captioners=captioners, stopping=RATED)


@pytest.fixture(scope="module")
def second(client):
    """Of captions alone, stopped by held-out images."""
    return _trained(client, learning_rate=0.25)


@pytest.mark.long
def test_its_score_is_what_the_file_says(client, first, tmp_path):
    own = _fetched(client, first["id"], tmp_path / "model.safetensors")
    assert own.name == first["metric"]
    for name in (own.name, f"nneval@{own.digest[:20]}", f"nneval@sha256:{own.digest}"):
        found = _evaluate(client, SAID[1], postgen=["bleu_1", name])
        assert list(found["scores"]) == ["bleu_1", own.name]
    with Jvm() as jvm:
        prepared = references.prepare_references(list(PEOPLE.values()), "none", jvm)
        captions = [each["caption"] for each in SAID[1]]
        rows = np.arange(len(IMAGES))
        direct = postgen.score_tokens("nneval", captions, prepared, rows, jvm, model=own)
    score = found["scores"][own.name]
    assert score["value"] == direct.corpus["nneval"]
    assert score["signature"] == direct.signatures["nneval"]
    low, high = score["interval"]
    assert low < score["value"] < high
    assert score["family"] == "postgen"
    assert {task["name"]: task["kind"] for task in found["tasks"]}[own.name] == "nneval"
    rows = client.get(f"/v1/evaluations/{found['id']}/captions").json()["items"]
    assert [row["scores"][own.name] for row in rows] == direct.captions["nneval"].tolist()


def test_the_card_says_what_was_done(client, first):
    card = first["model"]
    assert card["stopped_by"] == "people"
    assert card["training"]["captioners"] == {"m0": 1, "m1": "not stated", "m2": "not stated"}
    assert card["training"]["images"] == len(IMAGES) - 6  # which are held out
    assert {"dataset", "outputs m0", "m0 was trained on", "ratings"} <= set(
        card["training"]["inputs"]
    )
    told = [warning["detail"] for warning in first["warnings"]]
    assert told == [f"nobody says what {name} was trained on" for name in ("m1", "m2")]
    listed = {one["name"]: one for one in client.get("/v1/metrics").json()["items"]}
    assert first["metric"] in listed
    assert f"trained on tiny@v1/test by {first['id']}" in listed[first["metric"]]["definition"]


@pytest.mark.long
def test_the_clients_commands_train_show_and_fetch(service, client, second, tmp_path):
    captioners = []
    for at, said in enumerate(SAID):
        (tmp_path / f"m{at}.json").write_text(json.dumps(said))
        captioners += ["--outputs", f"m{at}={tmp_path}/m{at}.json"]
    out = tmp_path / "model.safetensors"
    small = ["--epochs", "5", "--tokenizer", "none", "--features", ",".join(FEATURES)]
    for arguments in (
        ["train", "tiny/test", *captioners, *small, "--json"],
        ["show", second["id"], "--out", str(out), "--json"],
        ["list", "tiny", "--json"],
    ):
        found = json.loads(run_command(service, "learned", *arguments).stdout)
        if arguments[0] == "train":
            assert (found["status"], found["model"]["epochs"]) == ("succeeded", 5)
        elif arguments[0] == "show":
            assert found["metric"] == second["metric"]
    assert second["id"] in [each["id"] for each in found]
    assert hashlib.sha256(out.read_bytes()).hexdigest()[:12] == second["metric"].split("@")[1]


def test_two_models_stand_side_by_side(client, first, second):
    names = [first["metric"], second["metric"]]
    found = _evaluate(client, SAID[2], postgen=[*names, "bleu_1"])
    assert set(found["scores"]) == {*names, "bleu_1"}
    one, other = (found["scores"][name] for name in names)
    assert one["value"] != other["value"]
    assert one["signature"] != other["signature"]
    url = f"/v1/evaluations/{found['id']}/captions"
    assert set(names) <= set(client.get(url).json()["items"][0]["scores"])
    head, *_ = client.get(url, headers={"Accept": "text/csv"}).text.splitlines()
    assert set(names) <= set(head.split(","))
    columns = safetensors.deserialize(client.get(f"{url}?format=columns").content)
    assert {f"captions/{name}" for name in names} <= {name for name, _ in columns}


def test_a_model_that_is_registered_is_asked_for_by_its_name_too(
    service, client, first, tmp_path, monkeypatch
):
    """One that was not trained there; `prescore score` says the same of it."""
    own = _fetched(client, first["id"], tmp_path / "model.safetensors")
    wider = replace(own, scaling=replace(own.scaling, high=own.scaling.high * 2))
    nneval.write_nneval(tmp_path / "wider.safetensors", wider)
    name = nneval.read_nneval(tmp_path / "wider.safetensors").name
    assets.add_asset("learned", tmp_path / "wider.safetensors", AssetFolders(service.home))
    found = _evaluate(client, SAID[1], postgen=["nneval", name, own.name])["scores"]
    assert found[name] == found["nneval"]
    assert found[name]["value"] != found[own.name]["value"]
    (tmp_path / "said.json").write_text(json.dumps(SAID[1]))
    (tmp_path / "tiny.tar").write_bytes(bundle_of(PEOPLE))
    monkeypatch.setenv("PRESCORE_HOME", str(service.home))
    asked = ["score", f"{tmp_path}/said.json", "--dataset", f"{tmp_path}/tiny.tar"]
    asked += ["--tokenizer", "none", "--json", "--metrics"]
    done = CliRunner().invoke(command_app.prescore(), [*asked, name])
    assert json.loads(done.stdout)["scores"][name] == found[name]


def test_photos_that_are_known_already_are_refused(client):
    captioners = _captioners(trained_on="tiny/test")
    found = _ended(client, _submitted(client, captioners=captioners))
    assert found["status"] == "failed"
    assert "'m0' was not trained on, found 48" in found["error"]["detail"]
    assert found["tasks"][0]["attempts"] == 1
    assert (found["metric"], found["model"]) == (None, None)


@pytest.mark.parametrize(
    ("change", "status", "pointer"),
    [
        ({"captioners": _captioners(name="m1")}, 422, ""),
        (
            {"captioners": _captioners(captions=[{"image": "x", "caption": "a"}])},
            422,
            "/captioners/0/captions/0/image",
        ),
        ({"captioners": [*_captioners(), {"name": "m3", "evaluation": "ev_nobody"}]}, 404, None),
        ({"captioners": _captioners(trained_on="nowhere/train")}, 404, None),
        ({"features": ["bleu_1", "spice"]}, 422, "/features/1"),
    ],
)
def test_what_cannot_be_trained_is_refused_with_its_place(client, change, status, pointer):
    answer = client.post("/v1/learned", json={"captioners": _captioners(), **SMALL, **change})
    assert answer.status_code == status, answer.text
    if pointer is not None:
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@pytest.mark.long
def test_a_model_gates_by_any_of_its_names(client, second):
    past = _evaluate(client, gates=[f"{second['metric']} > 0"], postgen=[])
    shown = second["metric"]
    assert past["verdict"] == "passed"
    assert set(past["scores"]) == {shown}
    file = client.get(f"/v1/learned/{second['id']}/model").content
    whole = f"nneval@{hashlib.sha256(file).hexdigest()}"
    gates = [f"{whole} >= baseline", f"no_significant_drop({whole[:30]})"]
    found = _evaluate(client, gates=gates, baseline=past["id"], postgen=[])
    assert [gate["verdict"] for gate in found["gates"]] == ["passed", "passed"]
    assert found["gates"][1]["scores"][whole[:30]]["p"] == 1


def test_a_model_is_probed_by_its_name(client, second):
    request = {"dataset": "tiny/test", "metrics": [second["metric"]], "tokenizer": "none"}
    answer = client.post("/v1/probes", json={**request, "probes": ["human"]})
    assert answer.status_code == 202, answer.text
    url = f"/v1/probes/{answer.json()['id']}"
    found = client.get(url, headers={"Prefer": "wait=60"}).json()
    assert found["status"] == "succeeded", found["error"]
    (row,) = found["probes"]["human"]
    digits = second["metric"].partition("@")[2]
    assert f"|model:{digits}|" in row["signatures"][second["metric"]]
