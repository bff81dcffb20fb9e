"""What a refusal says to somebody who made a small mistake: the place, and the near name."""

import pytest

from fleet import bundle

SAID = [{"image": f"{at}.jpg", "caption": "w2"} for at in range(40)]


def _refused(client, status, place="evaluations", **asked):
    answer = client.post(f"/v1/{place}", json={"dataset": "tiny/test", **asked})
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("place", "asked", "pointer"),
    [
        ("evaluations", {"captions": SAID, "postgen": ["bleu", "cidr_d"]}, "/postgen/1"),
        ("evaluations", {"captions": SAID, "gates": ["cidr_d > 0"]}, "/gates/0"),
        ("evaluations", {"captions": SAID, "trust": ["cidr_d"]}, "/trust/0"),
        ("probes", {"metrics": ["cidr_d"]}, "/metrics/0"),
    ],
)
def test_an_unknown_metric_is_pointed_at_with_the_near_one(client, place, asked, pointer):
    problem = _refused(client, 422, place, **asked)
    assert problem["code"] == "unknown_metric"
    (error,) = problem["errors"]
    assert error["pointer"] == pointer
    assert "did you mean cider_d" in error["detail"]


@pytest.mark.parametrize("of", ["leaderboard", "history"])
def test_an_unknown_metric_of_a_board_is_pointed_at(client, of):
    problem = client.get(f"/v1/datasets/tiny/{of}?metric=cidr_d").json()
    assert [error["pointer"] for error in problem["errors"]] == ["/query/metric"]
    assert "did you mean cider_d" in problem["detail"]


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        (
            "tinny/test",
            "no dataset 'tinny': add it with PUT /v1/datasets/{name}; did you mean tiny?",
        ),
        ("far/test", "no dataset 'far': add it with PUT /v1/datasets/{name}"),
        ("tiny@v9/test", "dataset tiny has no version v9; the latest is v1"),
        ("tiny/tset", "dataset tiny@v1 has no split 'tset'; it has test; did you mean test?"),
    ],
)
def test_an_unknown_dataset_is_told_with_the_near_one(client, dataset, said):
    assert _refused(client, 404, dataset=dataset, captions=SAID)["detail"] == said


def test_names_are_compared_once_each(client):
    for seed in range(3):
        assert client.put("/v1/datasets/several", content=bundle(2, seed=seed)).status_code == 201
    assert client.get("/v1/datasets/severl").json()["detail"].endswith("did you mean several?")


@pytest.mark.parametrize(
    ("asked", "pointer", "said"),
    [
        ({"tokenizer": "pbt"}, "/tokenizer", "'ptb' or 'none', found 'pbt'; did you mean ptb?"),
        ({"decoding": {"bean": 3}}, "/decoding/bean", "unknown field; did you mean beam?"),
        ({"postgenn": ["bleu"]}, "/postgenn", "unknown field; did you mean postgen"),
        ({"captions": "a dog"}, "/captions", "expected a list, found 'a dog'"),
        ({"dataset": 5}, "/dataset", "expected a text, found 5"),
    ],
)
def test_a_wrong_field_is_told_in_plain_english(client, asked, pointer, said):
    (error,) = _refused(client, 422, **{"captions": SAID, **asked})["errors"]
    assert error["pointer"] == pointer
    assert said in error["detail"]


def test_a_missing_field_is_told_in_plain_english(client):
    problem = client.post("/v1/evaluations", json={"captions": SAID}).json()
    assert problem["errors"] == [{"pointer": "/dataset", "detail": "expected a value, found none"}]


def test_a_wrong_number_in_a_query_is_told_in_plain_english(client):
    problem = client.get("/v1/evaluations?limit=0").json()
    assert problem["detail"] == "/query/limit: expected at least 1, found '0'"


def test_captions_by_image_id_are_pointed_at_by_that_field(client):
    captions = [{"image_id": 900, "caption": "w2"}, {"image_id": 7, "caption": "w2"}]
    captions += [{"image": "x.jpg", "caption": "w2"}, {"image_id": "900", "caption": "w2"}]
    problem = _refused(client, 422, captions=captions)
    pointers = [error["pointer"] for error in problem["errors"]]
    assert pointers == ["/captions/1/image_id", "/captions/2/image", "/captions/3/image_id"]
