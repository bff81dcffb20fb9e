"""Every image of a comparison, held against what the two evaluations answer of their captions."""

import numpy as np
import pytest

from helpers.builders import captions_with_references
from helpers.fleet import bundle_of, checkpoint, upload
from helpers.submissions import evaluate, finish, serve_datasets

WORDS = ["a", "man", "woman", "people", "dog", "runs", "sits", "on", "grass", "big"]
SAID, PEOPLE = captions_with_references(WORDS, 50, 0)
OTHERS = [PEOPLE[at][-1] if at % 3 else said for at, said in enumerate(SAID)]
IMAGES = {f"{at}.jpg": image for at, image in enumerate(PEOPLE)}
SORTS = [None, *(sign + by for by in ("difference", "a", "b") for sign in ("", "-"))]


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    features = np.random.default_rng(0).normal(size=(50, 5)).astype(np.float32)
    yield from serve_datasets(serve_here, tmp_path_factory, tiny=bundle_of(IMAGES, features))


def _evaluated(client, **asked):
    return evaluate(client, tokenizer="none", **asked)["id"]


def _said(captions):
    pairs = zip(IMAGES, captions, strict=True)
    return [{"image": image, "caption": caption} for image, caption in pairs]


def _compared(client, a, b, *metrics):
    answer = client.post("/v1/comparisons", json={"a": a, "b": b, "metrics": metrics or None})
    place = f"/v1/comparisons/{answer.json()['id']}"
    assert finish(client, place)["status"] == "succeeded"
    return f"{place}/images"


@pytest.fixture(scope="module")
def two(service):
    with service.client() as client:
        asked = {"postgen": ["bleu", "cider_d", "variety"]}
        return [_evaluated(client, captions=_said(each), **asked) for each in (SAID, OTHERS)]


@pytest.fixture(scope="module")
def place(service, two):
    with service.client() as client:
        return _compared(client, *two, "bleu_2", "cider_d")


def _expected(client, two, metric):
    """Of the two evaluations' own answers, in the dataset's order."""
    a, b = (client.get(f"/v1/evaluations/{each}/captions").json()["items"] for each in two)
    return [
        {
            "image": x["image"],
            "a": x["caption"],
            "b": y["caption"],
            "scores": {
                metric: {
                    "a": x["scores"][metric],
                    "b": y["scores"][metric],
                    "difference": pytest.approx(x["scores"][metric] - y["scores"][metric]),
                }
            },
        }
        for x, y in zip(a, b, strict=True)
    ]


def _paged(client, place, **query):
    items, cursor = [], None
    while True:
        params = {**query, "cursor": cursor}
        page = client.get(place, params={k: v for k, v in params.items() if v is not None})
        assert page.status_code == 200, page.text
        found = page.json()
        assert found["metric"] == query.get("metric", "bleu_2")
        items += found["items"]
        cursor = found["next"]
        if cursor is None:
            return items


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("metric", ["cider_d", "bleu_2"])
def test_all_images_are_there_in_the_order_that_is_asked_for(client, place, two, metric, sort):
    expected = _expected(client, two, metric)
    if sort is not None:
        by = sort.removeprefix("-")
        scores = [item["scores"][metric] for item in expected]
        values = np.array([s["a"] - s["b"] if by == "difference" else s[by] for s in scores])
        order = np.argsort(values if sort == by else -values, kind="stable")
        expected = [expected[at] for at in order]
    query = {"metric": metric} | ({} if sort is None else {"sort": sort})
    assert _paged(client, place, limit=9, **query) == expected
    assert _paged(client, place, **query) == expected


def test_a_cursor_is_of_the_same_question_alone(client, place):
    cursor = client.get(place, params={"sort": "a", "limit": 3}).json()["next"]
    for other in ({"sort": "-a"}, {"sort": "a", "metric": "cider_d"}, {}):
        answer = client.get(place, params={**other, "cursor": cursor})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")
    same = client.get(place, params={"sort": "a", "metric": "bleu_2", "cursor": cursor})
    assert len(same.json()["items"]) == 47


@pytest.mark.parametrize(
    ("query", "code", "pointer"),
    [
        ({"metric": "cider_e"}, "unknown_metric", "/query/metric"),
        ({"metric": "x" * 201}, "invalid_request", "/query/metric"),
        ({"sort": "image"}, "invalid_request", "/query/sort"),
        ({"limit": 10_001}, "invalid_request", "/query/limit"),
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(client, place, query, code, pointer):
    answer = client.get(place, params=query)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
    if "metric" in query and len(query["metric"]) < 200:
        assert "bleu_2, cider_d" in answer.json()["detail"]


def test_a_metric_that_the_comparison_is_not_by_is_not_there(client, place):
    answer = client.get(place, params={"metric": "bleu_1"})
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert "bleu_2, cider_d" in answer.json()["detail"]


def test_without_scores_of_captions_there_are_no_images(client, two):
    digest = upload(client, checkpoint())
    models = [_evaluated(client, checkpoint=digest, pregen="all", postgen=[]) for _ in range(2)]
    of_models = _compared(client, *models, "perplexity")
    assert client.get(of_models).status_code == 404
    answer = client.get(f"/v1/comparisons/{two[0]}/images")
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
