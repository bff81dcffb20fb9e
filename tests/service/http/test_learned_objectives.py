"""Models of accord that a service trains: from captions alone, and from judgements. Oracles: what
the command line makes of the same data, and the file that is fetched, scored here.
"""

import hashlib
import json

import pytest
from typer.testing import CliRunner

import prescore as client_library
from helpers import synthetic_captions
from helpers.fleet import bundle_of, until_ended
from helpers.submissions import serve_datasets
from prescore import commands
from service.contract.api.training import TrainingRequest
from workers.metrics.accord import model

IMAGES = synthetic_captions.images(110)
PEOPLE = {f"{at}.jpg": said for at, said in enumerate(IMAGES[:80])}
MORE = {f"{at}_more.jpg": said for at, said in enumerate(IMAGES[80:], 80)}
RATED = [
    {"image": image, "candidate": caption, "references": list(said[1:]), "ratings": ratings}
    for at, (image, said) in enumerate(PEOPLE.items())
    for caption, ratings in ((said[0], [4, 3]), (IMAGES[at - 7][0], [1, 2]))
]
PAIRS = [
    {"references": list(said[1:]), "a": IMAGES[at - 9][0], "b": said[0], "preferred": "b"}
    for at, said in enumerate(IMAGES[:80])
]
SAID = [{"image": image, "caption": said[0]} for image, said in PEOPLE.items()]
ASKED = {"dataset": "ours/test", "tokenizer": "none"}
JUDGED = {**ASKED, "objective": "judged", "judgements": {"rated": RATED, "pairs": PAIRS}}


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    ours, more = (
        bundle_of({image: list(said) for image, said in people.items()})
        for people in (PEOPLE, MORE)
    )
    yield from serve_datasets(serve_here, tmp_path_factory, ours=ours, more=more)


@pytest.fixture(scope="module")
def client(service):
    with service.client() as client:
        yield client


def _trained(client, **asked):
    answer = client.post("/v1/learned", json={**ASKED, **asked}, headers={"Prefer": "wait=60"})
    assert answer.status_code == 201, answer.text
    found = client.get(answer.headers["Location"], headers={"Prefer": "wait=60"}).json()
    assert found["status"] == "succeeded", found["error"]
    return found


@pytest.fixture(scope="module")
def judged(client):
    return _trained(client, **JUDGED)


def test_a_model_from_judgements_is_described(judged):
    described = judged["model"]
    assert judged["metric"].startswith("accord@")
    assert set(described["agreement"]["metrics"]) == {"this model", "accord", "cider_d"}
    assert set(described["training"]["inputs"]) == {"dataset", "judgements"}


def test_its_score_is_that_of_its_file(client, judged, tmp_path):
    content = client.get(f"/v1/learned/{judged['id']}/model").content
    (tmp_path / "m").write_bytes(content)
    own = model.read_accord(tmp_path / "m")
    assert own.name == judged["metric"] == f"accord@{hashlib.sha256(content).hexdigest()[:12]}"
    request = {**ASKED, "captions": SAID, "postgen": ["accord", f"accord@{own.digest}"]}
    request["gates"] = [f"{own.name} > 0.1"]
    answer = client.post("/v1/evaluations", json=request)
    found = until_ended(client, answer.json()["id"], 60)
    assert found["verdict"] == "passed"
    assert found["scores"][own.name]["value"] != found["scores"]["accord"]["value"]
    assert own.digest[:12] in found["scores"][own.name]["signature"]
    listed = {one["name"]: one for one in client.get("/v1/metrics").json()["items"]}
    assert f"trained on ours@v1/test by {judged['id']}" in listed[own.name]["definition"]


def test_contrast_learns_from_all_its_datasets(client):
    found = _trained(client, objective="contrast", further=["more/test"])
    card = found["model"]
    training = card["training"]
    assert (card["objective"], training["images"]) == ("contrast", 110)
    assert (training["judged"], card["agreement"]) == (None, None)
    assert {"dataset", "dataset 0"} == set(training["inputs"])
    assert card["right"].keys() == training["contrasts"].keys()


@pytest.mark.parametrize(
    ("change", "pointers"),
    [
        ({}, ["/captioners"]),
        ({"objective": "contrast", "epochs": 5, "features": ["bleu_1"]}, ["/epochs", "/features"]),
        ({"objective": "contrast", "further": ["more/test"] * 2}, [""]),
    ],
)
def test_fields_of_another_objective_are_refused_with_their_places(client, change, pointers):
    answer = client.post("/v1/learned", json={**ASKED, **change})
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == pointers


def test_a_request_of_before_has_the_digest_that_it_had():
    """By which a repeated request is known: one dataset, people, and no field since then."""
    captioner = {"evaluation": "ev_1", "captions": None, "trained_on": None}
    request = {
        "dataset": "ours/test",
        "captioners": [{"name": name, **captioner} for name in "abc"],
        "stopping": None,
        "leave_out_rated": False,
        "features": ["bleu_1"],
        "learning_rate": None,
        "beta": None,
        "epochs": 500,
        "seed": 0,
        "tokenizer": "none",
        "deadline": 3600,
    }
    assert TrainingRequest.model_validate(request).model_dump_json() == json.dumps(
        request, separators=(",", ":")
    )


def test_the_client_trains_and_waits(service, judged):
    with client_library.Client(service.url) as ours:
        again = ours.train_learned(
            "ours/test", objective="judged", judgements=[*RATED, *PAIRS], tokenizer="none"
        )
    assert again.metric == judged["metric"]
    assert again.model.weights == judged["model"]["weights"]
    assert again.model.agreement.metrics["accord"].kendall_c is not None


def test_the_clients_command_takes_the_objectives(service, judged, tmp_path):
    (tmp_path / "j.jsonl").write_text("\n".join(map(json.dumps, [*RATED, *PAIRS])))
    command = ["learned", "train", "ours/test", "--url", service.url, "--tokenizer", "none"]
    asked = ["--objective", "judged", "--judgements", str(tmp_path / "j.jsonl")]
    done = CliRunner().invoke(commands.build(), [*command, *asked])
    assert done.exit_code == 0, done.output
    assert judged["metric"] in done.stdout
    tau = judged["model"]["agreement"]["metrics"]["this model"]["kendall_c"]
    assert f"{tau:.3f} [" in done.stdout
