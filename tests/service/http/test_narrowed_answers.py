"""Answers that are narrowed to the metrics that a request names."""

import pytest

from helpers.fleet import bundle, checkpoint, upload
from helpers.submissions import evaluate, serve_datasets
from prescore import Client
from prescore.models.evaluations import Evaluation
from service.runs import evaluations

PREGEN = ("perplexity", "corpus_perplexity", "bits_per_byte")
CARD = {"value": 0.5, "interval": None, "none_because": None, "card": None}
HEALTH = {"human": 0.5}
ESTIMATE = {"value": 0.5, "interval": None, "images": 1, "of": 2}


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    yield from serve_datasets(serve_here, tmp_path_factory, tiny=bundle(12))


@pytest.fixture
def client(service):
    with service.client() as client:
        yield client


@pytest.fixture(scope="module")
def whole(service):
    """An evaluation with scores of both families, as it is answered without a list of metrics."""
    with service.client() as client:
        digest = upload(client, checkpoint(seed=11))
        asked = {"pregen": list(PREGEN), "postgen": ["cider_d", "bleu"], "tokenizer": "none"}
        return evaluate(client, checkpoint=digest, **asked)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("cider_d,bleu_2", {"cider_d", "bleu_2"}),
        ("bleu_4, perplexity", {"bleu_4", "perplexity"}),
        ("geomean_join_pplx_none", {"perplexity"}),  # by its full name
        ("meteor", set()),
    ],
)
def test_an_evaluation_has_the_named_metrics_alone(client, whole, asked, shown):
    place = f"/v1/evaluations/{whole['id']}"
    only = {name: score for name, score in whole["scores"].items() if name in shown}
    assert only.keys() == shown
    narrowed = client.get(place, params={"metrics": asked}).json()
    assert narrowed == {**whole, "scores": only}
    (listed,) = client.get("/v1/evaluations", params={"metrics": asked}).json()["items"]
    assert listed == narrowed


def test_kept_answers_of_one_list_are_not_those_of_another(client, whole):
    place = f"/v1/evaluations/{whole['id']}"
    for at in (place, "/v1/evaluations"):
        answers = [
            client.get(at, params=params).json()
            for params in ({"metrics": "bleu_1"}, {}, {"metrics": "bleu_2"}, {"metrics": "bleu_1"})
        ]
        shown = [(one["items"][0] if "items" in one else one)["scores"].keys() for one in answers]
        assert shown == [{"bleu_1"}, whole["scores"].keys(), {"bleu_2"}, {"bleu_1"}]


@pytest.mark.parametrize("forecast", [{"a": CARD, "b": CARD}, None])
def test_forecasts_estimates_and_health_are_narrowed_too(forecast):
    given = {"id": "ev_1", "status": "running", "dataset": {"name": "tiny"}, "forecast": forecast}
    given |= {"estimate": {"a": ESTIMATE, "b": ESTIMATE}, "health": {"b": HEALTH, "c": HEALTH}}
    found = evaluations.narrow_evaluation(Evaluation.model_validate(given), {"b", "d"})
    assert found.health.keys() == found.estimate.keys() == {"b"}
    assert found.forecast is None if forecast is None else found.forecast.keys() == {"b"}


def test_reasons_of_forecasts_are_narrowed():
    given = {"id": "ev_1", "status": "running", "dataset": {"name": "tiny"}}
    given["forecast"] = {"none_because": "few", "metrics": {"a": CARD, "b": CARD}}
    found = evaluations.narrow_evaluation(Evaluation.model_validate(given), {"a"})
    assert found.forecast.none_because == "few"
    assert found.forecast.metrics.keys() == {"a"}
    assert found.health is found.estimate is None


def test_the_catalogue_is_narrowed(client):
    every = {item["name"]: item for item in client.get("/v1/metrics").json()["items"]}
    found = client.get("/v1/metrics", params={"names": "meteor,perplexity,cider_d"}).json()
    by_name = {item["name"]: item for item in found["items"]}
    assert by_name.keys() == {"meteor", "geomean_join_pplx_none", "cider_d"}
    assert by_name == {name: every[name] for name in by_name}


@pytest.mark.parametrize(
    ("place", "names", "code"),
    [
        ("/v1/evaluations?metrics=", "cider_e", "unknown_metric"),
        ("/v1/metrics?names=", "cider_e", "unknown_metric"),
        ("/v1/evaluations?metrics=", "", "unknown_metric"),
        (
            "/v1/evaluations?metrics=",
            ",".join(f"nneval@{at:012x}" for at in range(21)),
            "invalid_request",
        ),
        (
            "/v1/metrics?names=",
            ",".join(f"nneval@{at:012x}" for at in range(51)),
            "invalid_request",
        ),
    ],
)
def test_a_wrong_list_is_refused_with_its_place(client, place, names, code):
    answer = client.get(place + names)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    parameter = place.partition("?")[2].strip("=")
    assert answer.json()["errors"][0]["pointer"] == f"/query/{parameter}"


def test_the_longest_lists_are_answered(client):
    for place, most in (("/v1/evaluations?metrics=", 20), ("/v1/metrics?names=", 50)):
        names = ",".join(f"nneval@{at:012x}" for at in range(most))
        assert client.get(place + names).status_code == 200


def test_other_runs_take_no_metrics(client):
    assert client.get("/v1/comparisons?metrics=cider_d").status_code == 422


def test_the_client_narrows(service, whole):
    with Client(service.url) as client:
        (found,) = client.evaluations(metrics=["bleu_1", "cider_d"])
        assert found.scores.keys() == {"bleu_1", "cider_d"}
        assert [one.name for one in client.metrics(["meteor"])] == ["meteor"]
