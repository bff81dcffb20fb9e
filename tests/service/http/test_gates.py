"""Gates: verdicts as scores come, baselines as they were at submission.

In process: verdicts are a rule on the record, asked whenever a task ends, whoever did the task.
"""

import pytest

from helpers.builders import captions_with_references
from helpers.fleet import bundle, bundle_of, checkpoint, until_ended, upload
from helpers.submissions import evaluate, finish, serve_datasets, submit

WORDS = ["a", "man", "woman", "people", "dog", "runs", "sits", "on", "grass", "big"]
SAID, PEOPLE = captions_with_references(WORDS, 40, 0)
IMAGES = {f"{at}.jpg": image for at, image in enumerate(PEOPLE)}
GOOD = [{"image": image, "caption": people[0]} for image, people in IMAGES.items()]
BAD = [{"image": image, "caption": said} for image, said in zip(IMAGES, SAID, strict=True)]


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    data = bundle_of(IMAGES, training=["a man runs on grass", "a dog sits", "people"])
    bundles = {"tiny": data, "fresh": data, "pictures": bundle(20)}
    yield from serve_datasets(serve_here, tmp_path_factory, **bundles)


def _request(captions, *gates, **more):
    given = {"dataset": "tiny/test", "postgen": ["bleu"], "tokenizer": "none", "gates": gates}
    return {**given, "captions": captions, **more}


def _evaluated(service, captions, *gates, **more):
    with service.client() as client:
        return until_ended(client, submit(client, **_request(captions, *gates, **more)), 60)


def test_all_wrong_gates_are_told_at_once(client):
    gates = ("ciderd >= 1", "bleu_4 > 0.5", "cider_d >= baseline", "bleu_4 >= 33")
    answer = client.post("/v1/evaluations", json=_request(GOOD, *gates))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert answer.json()["detail"] == "3 of 4 gates are wrong"
    told = {one["pointer"]: one["detail"] for one in answer.json()["errors"]}
    assert list(told) == ["/gates/0", "/gates/2", "/gates/3"]
    assert "did you mean cider_d" in told["/gates/0"]
    assert "needs a baseline" in told["/gates/2"]
    assert "0.33" in told["/gates/3"]
    many = client.post("/v1/evaluations", json=_request(GOOD, *["x > 1"] * 50)).json()
    assert (many["detail"], len(many["errors"])) == ("50 of 50 gates are wrong", 20)


@pytest.mark.long
def test_pregen_scores_gate_too(client):
    model = upload(client, checkpoint(seed=4711))
    name = "median_max_prob_none"
    request = {
        "checkpoint": model,
        "dataset": "pictures/test",
        "postgen": [],
        "gates": ["perplexity < 1e9", f"{name} > 2"],
    }
    for pregen in ("all", []):
        found = evaluate(client, **request, pregen=pregen)
        assert name in found["scores"]
        assert [gate["verdict"] for gate in found["gates"]] == ["passed", "failed"]
    again = {**request, "baseline": found["id"], "gates": [f"{name} >= baseline"]}
    assert evaluate(client, **again)["verdict"] == "passed"
    again["gates"] = ["no_significant_drop(perplexity, mean_max_normcount_prefix0)"]
    same = evaluate(client, **again)
    assert same["verdict"] == "passed"
    assert same["gates"][0]["scores"]["perplexity"]["p"] == 1


@pytest.mark.long
def test_a_metric_that_prefers_one_sentence_to_people_does_not_gate(service, client):
    """People who all say something else, and one sentence that shares a word with each."""
    sayings = ("a big dog", "a sits man", "people runs a", "woman a on", "grass a a")
    data = bundle_of({f"{at}.jpg": sayings for at in range(20)}, training=["a a a", *sayings])
    assert client.put("/v1/datasets/odd", content=data).status_code == 201
    begun = client.post("/v1/probes", json={"dataset": "odd/test", "metrics": ["bleu_1"]})
    found = finish(client, begun.headers["Location"])["health"]["bleu_1"]
    assert found["constant"] > found["human"]
    captions = [{"image": f"{at}.jpg", "caption": "a big dog"} for at in range(20)]
    odd = {"dataset": "odd/test", "postgen": []}
    poor = _evaluated(service, captions, "bleu_1 > 0", **odd)
    assert poor["health"]["bleu_1"] == found
    assert poor["verdict"] == "undecided"
    assert "trust" in poor["gates"][0]["detail"]
    assert _evaluated(service, captions, "bleu_1 > 0", trust=["bleu"], **odd)["verdict"] == "passed"


@pytest.mark.long
def test_a_significant_drop_fails_and_chance_does_not(service):
    gate = "no_significant_drop(bleu_4, cider_d)"
    past = _evaluated(service, GOOD, "cider_d > 0", labels={"branch": "drop"})
    worse = _evaluated(service, BAD, gate, baseline="branch=drop")
    assert worse["verdict"] == "failed"
    scores = worse["gates"][0]["scores"]
    for name in ("bleu_4", "cider_d"):
        mine, old = (each["scores"][name]["value"] for each in (worse, past))
        assert scores[name]["difference"] == pytest.approx(mine - old)
        assert scores[name]["p"] < 0.05
        assert scores[name]["minimum_detectable"] > 0
    names = [task["name"] for task in worse["tasks"]]
    assert names[-2:] == ["comparison_bleu", "comparison_cider_d"]
    swapped = [GOOD[0] | {"caption": "a big dog"}, *GOOD[1:]]
    nearly = _evaluated(service, swapped, gate, baseline="branch=drop")
    assert nearly["verdict"] == "passed"
    assert nearly["gates"][0]["scores"]["cider_d"]["difference"] < 0
    assert "would be found 4 times in 5" in nearly["gates"][0]["detail"]
    other = _evaluated(service, BAD, gate, baseline="branch=drop", tokenizer="ptb")
    assert other["verdict"] == "not_comparable"
    assert other["status"] == "succeeded"


@pytest.mark.long
def test_a_margin_decides_by_the_interval_of_the_difference(service):
    past = _evaluated(service, GOOD, "cider_d > 0", labels={"branch": "margin"})
    gates = ("not_worse(bleu_4, cider_d, 5 %)", "better(bleu_1)")
    worse, same, nearly = (
        _evaluated(service, captions, *gates, baseline="branch=margin")
        for captions in (BAD, GOOD, [GOOD[0] | {"caption": "a big dog"}, *GOOD[1:]])
    )
    assert [gate["verdict"] for gate in worse["gates"]] == ["failed", "failed"]
    assert [gate["verdict"] for gate in same["gates"]] == ["passed", "undecided"]
    assert [gate["verdict"] for gate in nearly["gates"]][1] != "passed"
    for found in (worse, nearly):
        score = found["gates"][0]["scores"]["cider_d"]
        low, high = score["difference_interval"]
        assert low < score["difference"] < high
        assert score["baseline"] == past["scores"]["cider_d"]["value"]
        assert found["gates"][0]["detail"].count("one of 3 differences") == 2
    assert "more image" in nearly["gates"][1]["detail"]


@pytest.mark.parametrize(
    ("baseline", "status", "said"), [("main", 422, "branch=main"), ("ev_x", 404, "ev_x")]
)
def test_a_baseline_that_is_none_is_refused_with_its_place(client, baseline, status, said):
    request = _request(GOOD, "cider_d > 0", baseline=baseline)
    answer = client.post("/v1/evaluations", json=request)
    assert answer.status_code == status
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/baseline"]
    assert said in answer.text


@pytest.mark.parametrize("failed", [True, False])
def test_a_baseline_that_is_named_and_failed_its_own_gates_is_told_so(service, failed):
    limit = "bleu_1 <= 0.0001" if failed else "bleu_1 >= 0"
    first = _evaluated(service, GOOD, limit)
    assert first["verdict"] == ("failed" if failed else "passed")
    again = _evaluated(service, GOOD, "bleu_1 >= baseline", baseline=first["id"])
    assert first["id"] in again["gates"][0]["detail"]
    assert ("which failed its own gates" in again["gates"][0]["detail"]) == failed
    assert (again["verdict"], again["gates"][0]["baseline_failed"]) == ("passed", failed)
    free = _evaluated(service, GOOD, "bleu_1 >= 0", baseline=first["id"])
    assert free["gates"][0]["baseline_failed"] is False


def _baseline_of(evaluation):
    return evaluation["gates"][0]["scores"]["bleu_1"]["evaluation"]


@pytest.mark.parametrize(
    ("gates", "more", "verdict"),
    [
        ([], {}, None),
        (["bleu_1 >= 0", "spice >= 0"], {}, "undecided"),
        (["bleu_1 >= baseline"], {"baseline": "none=yet"}, "not_comparable"),
        (["bleu_1 <= 0.0001"], {}, "failed"),
    ],
)
def test_only_a_run_whose_gates_passed_or_that_has_none_is_found_as_a_baseline(
    service, gates, more, verdict
):
    """By its label, and as the best, although it is both the latest and the best."""
    labels = {"tried": f"{gates} {more}"[:100]}
    baseline = f"tried={labels['tried']}"
    given = {"dataset": "fresh/test"}
    before = _evaluated(service, BAD, labels=labels, **given)
    tried = _evaluated(service, GOOD, *gates, labels=labels, **given, **more)
    assert (tried["status"], tried["verdict"]) == ("succeeded", verdict)
    found = before if verdict not in (None, "passed") else tried
    after = _evaluated(service, BAD, "bleu_1 >= baseline", baseline=baseline, **given)
    assert _baseline_of(after) == found["id"]


def test_however_many_tries_failed_the_baseline_before_them_is_found(service):
    """A search that looked at the latest twenty would find none, and let the next try pass."""
    main = {"baseline": "branch=long", "labels": {"branch": "long"}, "if_no_baseline": "pass"}
    gate = "bleu_1 >= baseline - 0.01"
    first = _evaluated(service, GOOD, gate, **main)
    tries = [_evaluated(service, BAD, gate, **main) for _ in range(22)]
    assert {one["verdict"] for one in tries} == {"failed"}
    assert {_baseline_of(one) for one in tries} == {first["id"]}
