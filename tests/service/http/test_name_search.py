"""GET /v1/search: bounds of its parameters, its answer, and other teams."""

import pytest

from helpers.fleet import bundle
from helpers.submissions import client_of_team, submit
from prescore import Client

CAPTIONS = [{"image": f"{at}.jpg", "caption": "w2 w3"} for at in range(12)]


@pytest.fixture(scope="module")
def evaluation(service):
    with service.client() as client:
        client.put("/v1/datasets/tiny", content=bundle(12))
        labels = {"run": "a night's run", "step": "7"}
        return submit(client, captions=CAPTIONS, postgen=["bleu_1"], labels=labels)


def _search(client, text, **more):
    answer = client.get("/v1/search", params={"q": text, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


def test_a_match_has_all_its_parts(client, evaluation):
    training, found = _search(client, "NIGHT")
    assert training == {
        "kind": "training",
        "name": "a night's run",
        "detail": "1 evaluation",
        "dataset": "tiny/test",
        "evaluation": None,
        "image": None,
        "run": "a night's run",
        "labels": None,
        "metric": None,
    }
    assert found == {
        **training,
        "kind": "evaluation",
        "name": evaluation,
        "detail": "run=a night's run",
        "evaluation": evaluation,
        "labels": {"run": "a night's run", "step": "7"},
    }
    (image,) = [one for one in _search(client, "11.jpg") if one["kind"] == "image"]
    place = f"/v1/evaluations/{image['evaluation']}/captions"
    (shown,) = client.get(place, params={"image": image["image"]}).json()["items"]
    assert shown["image"] == "11.jpg"


def test_a_note_is_found_as_soon_as_it_is_written(client, evaluation):
    client.patch(f"/v1/evaluations/{evaluation}", json={"note": "odd colours"})
    assert [one["name"] for one in _search(client, "Colour")] == [evaluation]


@pytest.mark.parametrize(
    "query", ["", "?q=", f"?q={'x' * 101}", "?q=a%00b", "?q=a&limit=0", "?q=a&limit=51", "?q=a&x=1"]
)
def test_wrong_parameters_are_refused(client, query):
    assert client.get(f"/v1/search{query}").status_code == 422


@pytest.mark.parametrize("text", ["x" * 100, "\ud7ff\U0010ffff", "%", "_", "\\", "'\"", " "])
def test_odd_texts_are_looked_for(client, text):
    assert len(_search(client, text, limit=50)) <= 50


def test_the_client_searches(service, evaluation):
    with Client(service.url) as client:
        assert [one.evaluation for one in client.search(evaluation)] == [evaluation]


def test_other_teams_find_nothing_of_it(serve_here, tmp_path):
    with (
        serve_here(tmp_path / "home") as service,
        client_of_team(service, "owners") as own,
        client_of_team(service, "strangers") as client,
    ):
        own.put("/v1/datasets/tiny", content=bundle(12))
        identity = submit(own, captions=CAPTIONS, postgen=["bleu_1"], labels={"run": "a night"})
        for text in ("night", "tiny", "11.jpg", identity):
            assert _search(own, text) != []
            assert _search(client, text) == []
