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

import commanding
from builders import sentence
from fleet import bundle_of, until, until_ended
from service.contract.assets import AssetFolders
from service.contract.plan import planning
from service.contract.plan.planning import TrainingCaptioner
from service.contract.plan.tasks import Blob
from service.engine.tables import task_rows
from service.runs import run_store
from service.runs.run_store import NewRun
from service.stored import datasets
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
    with serve_here(tmp_path_factory.mktemp("a home")) as service:
        with service.client() as client:
            data = bundle_of(PEOPLE, training=["a man runs"])
            assert client.put("/v1/datasets/tiny", content=data).status_code == 201
            theirs = bundle_of({"5_z.jpg": ["a"]})
            assert client.put("/v1/datasets/theirs", content=theirs).status_code == 201
        yield service


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
    def over():
        found = client.get(f"/v1/learned/{identity}").json()
        return found if found["status"] in ("succeeded", "failed", "canceled") else None

    return until(over, 60, "the training's end")


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
    request = {"captions": said, "dataset": "tiny/test", "tokenizer": "none", **more}
    return until_ended(client, client.post("/v1/evaluations", json=request).json()["id"], 60)


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
    assert list(card["features"]) == FEATURES
    assert card["stopped_by"] == "people"
    assert card["training"]["captioners"] == {"m0": 1, "m1": "not stated", "m2": "not stated"}
    assert card["training"]["images"] == len(IMAGES) - 6  # which are held out
    assert {"dataset", "outputs m0", "m0 was trained on", "ratings"} <= set(
        card["training"]["inputs"]
    )
    assert list(card["kendall_c"]) == [
        *("all features", *FEATURES),
        *(f"without {name}" for name in FEATURES),
    ]
    told = [warning["detail"] for warning in first["warnings"]]
    assert told == [f"nobody says what {name} was trained on" for name in ("m1", "m2")]
    listed = {one["name"]: one for one in client.get("/v1/metrics").json()["items"]}
    assert first["metric"] in listed
    assert f"trained on tiny@v1/test by {first['id']}" in listed[first["metric"]]["definition"]


@pytest.mark.long
def test_the_command_trains_the_same_here(client, first, tmp_path):
    (tmp_path / "tiny.tar").write_bytes(bundle_of(PEOPLE, training=["a man runs"]))
    (tmp_path / "rated.jsonl").write_text("\n".join(map(json.dumps, RATED)))
    arguments = [f"{tmp_path}/tiny.tar/test", "--features", ",".join(FEATURES)]
    arguments += ["--tokenizer", "none", "--epochs", "5", "--ratings", f"{tmp_path}/rated.jsonl"]
    for at, said in enumerate(SAID):
        (tmp_path / f"m{at}.json").write_text(json.dumps(said))
        arguments += ["--outputs", f"m{at}={tmp_path}/m{at}.json"]
    place = ["--home", str(tmp_path / "home"), "--out", str(tmp_path / "ours"), "--json"]
    command = ["learned", "train", *arguments, *place]
    done = CliRunner().invoke(commanding.prescore(), command)
    assert done.exit_code == 0, done.output
    ours = json.loads(done.stdout)["model"]
    for fact in ("kendall_c", "epochs", "best_epoch"):
        assert ours[fact] == first["model"][fact]
    _fetched(client, first["id"], tmp_path / "theirs")
    tensors = []
    for file in ("ours", "theirs"):
        with safetensors.safe_open(tmp_path / file, framework="numpy") as opened:
            tensors.append({name: opened.get_tensor(name) for name in opened.keys()})  # noqa: SIM118
    assert tensors[0].keys() == tensors[1].keys()
    for name, values in tensors[0].items():
        np.testing.assert_array_equal(values, tensors[1][name])


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
        command = ["learned", *arguments, "--url", service.url]
        done = CliRunner().invoke(commanding.prescore(), command)
        assert done.exit_code == 0, done.output
        found = json.loads(done.stdout)
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
    again = _evaluate(client, SAID[2], postgen=names)
    assert {task["cached"] for task in again["tasks"]} == {True}


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
    done = CliRunner().invoke(commanding.prescore(), [*asked, name])
    assert json.loads(done.stdout)["scores"][name] == found[name]
    refused = CliRunner().invoke(commanding.prescore(), [*asked, own.name])
    assert refused.exit_code == 2
    assert f"no model of {own.name} here" in refused.stderr


def test_the_same_again_computes_nothing(client, second):
    again = _trained(client, learning_rate=0.25)
    assert again["id"] != second["id"]
    assert [task["cached"] for task in again["tasks"]] == [True]
    assert (again["metric"], again["model"]) == (second["metric"], second["model"])
    other = _trained(client, learning_rate=0.25, seed=1)
    assert other["metric"] != second["metric"]


def test_it_is_polled_as_an_evaluation_is(client, second):
    url = f"/v1/learned/{second['id']}"
    answer = client.get(url)
    same = client.get(url, headers={"If-None-Match": answer.headers["ETag"]})
    assert same.status_code == 304
    assert client.get(f"/v1/evaluations/{second['id']}").status_code == 404
    assert {item["id"][:3] for item in client.get("/v1/evaluations").json()["items"]} <= {"ev_"}
    with client.stream(
        "POST",
        "/v1/learned",
        headers={"Prefer": "wait=60"},
        json={"captioners": _captioners(), **SMALL, "seed": 7},
    ) as held:
        assert held.status_code == 201
        (task,) = json.loads(held.read())["tasks"]
    assert task["progress"]["done"] <= task["progress"]["total"]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"captioners": _captioners(trained_on="theirs/test")}, "'m0' was not trained on, found 1"),
        ({"captioners": _captioners(trained_on="tiny/test")}, "'m0' was not trained on, found 48"),
        ({"stopping": [RATED[0] | {"image": "7_y.jpg"}, *RATED[1:]]}, "no photo in common"),
        ({"captioners": _captioners(captions=SAID[0][:59])}, "expected at least 3 captioners'"),
    ],
)
def test_photos_that_are_known_already_are_refused(client, change, complaint):
    found = _ended(client, _submitted(client, **change))
    assert found["status"] == "failed"
    assert complaint in found["error"]["detail"]
    assert found["tasks"][0]["attempts"] == 1
    assert (found["metric"], found["model"]) == (None, None)
    assert client.get(f"/v1/learned/{found['id']}/model").status_code == 409


def test_a_model_that_says_nothing_of_captions_fails_with_the_figures(client):
    found = _ended(client, _submitted(client, beta=100.0, epochs=60))
    assert (found["status"], found["error"]["code"]) == ("failed", "metric_failed")
    assert "says nothing of captions: expected " in found["error"]["detail"]
    assert ", found 0." in found["error"]["detail"]
    assert (found["metric"], found["model"]) == (None, None)


def test_rated_photos_are_left_out_where_that_is_asked(client):
    rated = [RATED[0] | {"image": "7_y.jpg"}, *RATED[1:]]
    found = _trained(client, stopping=rated, leave_out_rated=True)
    assert found["model"]["training"]["images"] == len(IMAGES) - 1 - 6


@pytest.mark.parametrize(
    ("change", "status", "pointer"),
    [
        ({"captioners": _captioners()[:2]}, 422, "/captioners"),
        ({"captioners": _captioners(name="m1")}, 422, ""),
        ({"captioners": _captioners(evaluation="ev_x")}, 422, "/captioners/0"),
        ({"captioners": [*_captioners(), {"name": "m3"}]}, 422, "/captioners/3"),
        (
            {"captioners": _captioners(captions=[{"image": "x", "caption": "a"}])},
            422,
            "/captioners/0/captions/0/image",
        ),
        ({"captioners": [*_captioners(), {"name": "m3", "evaluation": "ev_nobody"}]}, 404, None),
        ({"captioners": _captioners(trained_on="nowhere/train")}, 404, None),
        ({"features": ["rouge_l"]}, 422, "/features/0"),
        ({"features": ["bleu_1", "bleu_1"]}, 422, ""),
        ({"features": ["bleu_1", "spice"]}, 422, "/features/1"),
        ({"stopping": [{**RATED[0], "ratings": []}]}, 422, "/stopping/0/ratings"),
        ({"learner": "network"}, 422, "/learner"),
        ({"dataset": "nowhere/test"}, 404, None),
    ],
)
def test_what_cannot_be_trained_is_refused_with_its_place(client, change, status, pointer):
    answer = client.post("/v1/learned", json={"captioners": _captioners(), **SMALL, **change})
    assert answer.status_code == status, answer.text
    if pointer is not None:
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_an_evaluation_of_another_split_lends_no_captions(client):
    said = [{"image": "seen0.jpg", "caption": "a"}]
    evaluation = _evaluate(client, said, dataset="tiny/train", postgen=["bleu_1"])
    given = [*_captioners(), {"name": "m3", "evaluation": evaluation["id"]}]
    answer = client.post("/v1/learned", json={**SMALL, "captioners": given})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/captioners/3/evaluation"


@pytest.mark.long
def test_a_feature_of_word_vectors_takes_those_that_are_registered(service, client, tmp_path):
    """With others a score of the same model is refused, rather than another number."""
    asked = {"features": ["bleu_1", "wmd"], "learning_rate": 0.25}
    scored = []
    for power in (1, 2):
        lines = [f"{word} {index**power} {index % 3}" for index, word in enumerate(WORDS, 1)]
        (tmp_path / "vectors.txt").write_text("\n".join([f"{len(lines)} 2", *lines, ""]))
        assets.add_asset("word-vectors", tmp_path / "vectors.txt", AssetFolders(service.home))
        found = _trained(client, **asked)
        assert "vectors:" in found["model"]["features"]["wmd"]
        scored.append(found["metric"])
    assert scored[0] != scored[1]
    evaluation = _evaluate(client, SAID[1], postgen=scored)
    assert list(evaluation["scores"]) == scored[1:]
    assert evaluation["error"]["code"] == "metric_failed"
    assert "another score altogether" in evaluation["error"]["detail"]


def test_a_cancel_cancels(service, client):
    with service.held():
        identity = _submitted(client, features=["meteor"], tokenizer="ptb")
        canceled = client.post(f"/v1/learned/{identity}/cancel")
    assert canceled.status_code == 202
    assert canceled.json()["status"] == "canceled"
    assert canceled.json()["metric"] is None


def _plant(service, digests):
    """Trainings that brought these, in the record alone."""
    pinned = datasets.pin_split(service.records, "tiny/test")
    for at, digest in enumerate(digests):
        captioners = [TrainingCaptioner(f"c{at}", Blob(digest))]
        plan = planning.plan_learned(pinned.digest, "test", captioners, None, {})
        with service.records.transaction() as connection:
            run_store.insert_run(
                connection,
                service.records,
                NewRun(f"ln_{at}", "training", {}, pinned, plan, [], 60),
            )
            connection.execute(
                task_rows.update()
                .where(task_rows.c.key == plan.named["model"].key)
                .values(status="done", result=digest)
            )


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("nneval@" + "0" * 12, "there is no model of nneval@000000000000 here"),
        ("nneval@0123456789abc", "give more digits"),
        ("nneval@0123", "the first 12 or more hex digits"),
        ("nneval@", "the first 12 or more hex digits"),
        ("bleu_1@0123456789ab", "no metric is called"),
    ],
)
def test_a_name_that_says_no_model_is_refused(service, client, second, name, complaint):
    if "more digits" in complaint:
        _plant(service, [f"sha256:{'0123456789abc':{end}<64}" for end in "de"])
    request = {"captions": SAID[0], "dataset": "tiny/test", "postgen": ["bleu", name]}
    answer = client.post("/v1/evaluations", json=request)
    assert answer.status_code == 422
    assert answer.json()["code"] == "unknown_metric"
    assert complaint in answer.json()["detail"]
    if "no model" in complaint:
        assert second["metric"] in answer.json()["detail"]
        assert answer.json()["errors"][0]["pointer"] == "/postgen/1"


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
    request = {"captions": SAID[0], "dataset": "tiny/test", "gates": [f"nneval@{'0' * 12} > 0"]}
    refused = client.post("/v1/evaluations", json=request)
    assert refused.json()["errors"][0]["pointer"] == "/gates/0"
    assert shown in refused.json()["detail"]


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
    wrong = client.post("/v1/probes", json={**request, "metrics": [f"accord@{digits}"]})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "unknown_metric")
    assert wrong.json()["errors"][0]["pointer"] == "/metrics/0"
