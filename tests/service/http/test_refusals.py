"""What a refusal says to somebody who made a small mistake: the place, and the near name."""

import gzip
import json
import re

import httpx
import pytest

from helpers import interface
from helpers.fleet import bundle
from helpers.submissions import submit


@pytest.fixture(scope="module")
def evaluation(service):
    with service.client() as client:
        return submit(client, captions=SAID, postgen=["bleu"], tokenizer="none")


SAID = [{"image": f"{at}.jpg", "caption": "w2"} for at in range(40)]


def _refused(client, status, place="evaluations", **asked):
    answer = client.post(f"/v1/{place}", json={"dataset": "tiny/test", **asked})
    assert answer.status_code == status, answer.text
    return answer.json()


@pytest.mark.parametrize(
    ("place", "asked", "pointers"),
    [
        (
            "evaluations",
            {
                "captions": SAID,
                "postgen": ["cider", "blue", "rouge"],
                "pregen": ["perplexty"],
                "trust": ["blue"],
            },
            ["/pregen/0", "/postgen/1", "/postgen/2", "/trust/0"],
        ),
        (
            *("evaluations", {"captions": SAID, "postgen": ["blue"] * 30}),
            [f"/postgen/{at}" for at in range(20)],
        ),
        ("probes", {"metrics": ["cidr_d", "bleu", "meteo"]}, ["/metrics/0", "/metrics/2"]),
    ],
)
def test_unknown_metrics_are_told_all_at_once_with_the_near_ones(client, place, asked, pointers):
    problem = _refused(client, 422, place, **asked)
    assert problem["code"] == "unknown_metric"
    assert [error["pointer"] for error in problem["errors"]] == pointers
    assert all("did you mean" in error["detail"] for error in problem["errors"])
    assert re.fullmatch("[0-9]+ of [0-9]+ metrics are wrong", problem["detail"])


@pytest.mark.parametrize(
    ("place", "asked", "pointer"),
    [
        ("evaluations", {"columns": f"sha256:{'0' * 64}", "postgen": []}, "/columns"),
        ("comparisons", {"a": "ev_1", "b": "ev_2"}, "/a"),
        ("probes", {"dataset": "tiny/test", "evaluation": "ev_1"}, "/evaluation"),
        ("studies", {"dataset": "zebra/test"}, "/dataset"),
    ],
)
def test_what_a_body_names_and_is_not_there_is_pointed_at(
    client, evaluation, place, asked, pointer
):
    usual = {"evaluations": {"dataset": "tiny/test"}, "comparisons": {"a": evaluation}}
    body = usual.get(place, {}) | asked
    answer = client.post(f"/v1/{place}", json=body)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (404, "not_found"), problem
    assert [error["pointer"] for error in problem["errors"]] == [pointer]


def test_metrics_in_the_wrong_list_are_told_all_at_once(client):
    wrong = {"pregen": ["cider_d", "perplexity", "bleu"], "postgen": ["perplexity", "meteor"]}
    problem = _refused(client, 422, dataset="tiny/test", captions=SAID, **wrong)
    assert problem["detail"] == "3 metrics are in the wrong list"
    assert [(error["pointer"], error["detail"]) for error in problem["errors"]] == [
        ("/pregen/0", "cider_d is a post-gen metric: ask for it in `postgen`"),
        ("/pregen/2", "bleu is a post-gen metric: ask for it in `postgen`"),
        ("/postgen/0", "perplexity is a pre-gen metric: ask for it in `pregen`"),
    ]


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        (
            "tinny/test",
            "no dataset 'tinny': add it with PUT /v1/datasets/{name}; did you mean tiny?",
        ),
        ("tiny/tset", "dataset tiny@v1 has no split 'tset'; it has test; did you mean test?"),
    ],
)
def test_an_unknown_dataset_is_told_with_the_near_one(client, dataset, said):
    assert _refused(client, 404, dataset=dataset, captions=SAID)["detail"] == said


@pytest.mark.parametrize(
    ("asked", "pointer", "said"),
    [
        ({"tokenizer": "pbt"}, "/tokenizer", "'ptb' or 'none', found 'pbt'; did you mean ptb?"),
        ({"postgenn": ["bleu"]}, "/postgenn", "unknown field; did you mean postgen"),
        ({"metrics": ["bleu"]}, "/metrics", "unknown field; did you mean postgen or pregen?"),
        ({"model": "a.pt"}, "/model", "unknown field; did you mean checkpoint?"),
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


def test_probes_of_a_part_of_a_split_are_refused_without_advice(client):
    problem = _refused(client, 422, "probes", captions=SAID[:39])
    said = "1 of 40 images has no caption, the first is '39.jpg'"
    assert problem["detail"] == f"captions do not fit tiny@v1/test: {said}"


def test_captions_by_image_id_are_pointed_at_by_that_field(client):
    captions = [{"image_id": 900, "caption": "w2"}, {"image_id": 7, "caption": "w2"}]
    captions += [{"image": "x.jpg", "caption": "w2"}, {"image_id": "900", "caption": "w2"}]
    problem = _refused(client, 422, captions=captions)
    pointers = [error["pointer"] for error in problem["errors"]]
    assert pointers == ["/captions/1/image_id", "/captions/2/image", "/captions/3/image_id"]


def test_captions_that_name_no_image_at_all_are_told_with_a_name_that_is_one(client):
    unknown = [{"image": f"{at}", "caption": "w2"} for at in range(40)]
    (told,) = _refused(client, 422, captions=unknown)["errors"]
    assert told == {
        "pointer": "/captions",
        "detail": "40 of 40 captions name no image of tiny@v1/test: found '0', "
        "expected a name such as '0.jpg'",
    }


@pytest.mark.parametrize(
    ("body", "status", "found", "pointer"),
    [
        (b"image,caption\n0.jpg,w2\n", 400, "a table of captions (CSV)", None),
        (b"\xef\xbb\xbfcaption\timage\nw2\t0.jpg\n", 400, "a table of captions (CSV)", None),
        (
            b'{"image": "0.jpg", "caption": "w2"}\n{"image": "1.jpg", "caption": "w2"}\n',
            *(400, "captions in JSON Lines", None),
        ),
        (
            b'{"image_id": 1, "caption": "w2"}{"image_id": 2, "caption": "w2"}',  # by curl -d @FILE
            *(400, "captions in JSON Lines", None),
        ),
        (json.dumps(SAID), 422, "the list alone", ""),
        (json.dumps(SAID[0]), 422, "a caption alone", ""),
        ('{"0.jpg": ["w2"]}', 422, "captions by image, as pycocoevalcap has them", ""),
        (
            '{"dataset": "tiny/test", "captions": {"0.jpg": [{"caption": "w2"}]}}',
            *(422, "captions by image, as pycocoevalcap has them", "/captions"),
        ),
    ],
)
def test_a_file_with_captions_is_told_as_what_it_is(client, body, status, found, pointer):
    sent = {"Content-Type": "application/json"}
    answer = client.post("/v1/evaluations", content=body, headers=sent)
    problem = answer.json()
    assert answer.status_code == status
    assert (
        f"…]{'}' * (pointer != '/captions')}, found {found}: `prescore submit FILE --dataset "
        in problem["detail"]
    )
    assert [one["pointer"] for one in problem["errors"]] == ([] if pointer is None else [pointer])


@pytest.mark.parametrize(
    ("place", "body", "said"),
    [
        ("evaluations", b"{", "expected JSON with a name in double quotes at column 2, "),
        ("evaluations", b'{"images": [{"caption": "w2"}]}', "/images: unknown field"),
        (
            "evaluations",
            b'{"captions": [{"image": "0.jpg", "caption": "w2"},]}',
            "at column 51, found",
        ),
        ("evaluations", b"a caption", "a value at column 1, found 'a caption'"),
        ("evaluations", b'{"0.jpg": "w2"}', "/0.jpg: unknown field"),
        ("comparisons", b"image,caption\n0.jpg,w2\n", "a value at line 1, column 1, found 'image,"),
    ],
)
def test_what_is_no_file_with_captions_is_told_as_before(client, place, body, said):
    sent = {"Content-Type": "application/json"}
    answer = client.post(f"/v1/{place}", content=body, headers=sent)
    assert said in answer.json()["detail"]


def test_a_dataset_in_another_format_is_told_as_what_it_is(client):
    answer = client.put("/v1/datasets/other", content=gzip.compress(bundle(3)))
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_dataset")
    expected = "expected a dataset bundle: a tar or a folder with captions.jsonl, "
    assert answer.json()["detail"].startswith(f"{expected}found a compressed file: unpack it first")


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/v1/evaluation", ["/v1/evaluations"]),
        ("/evaluations/ev_1", ["/v1/evaluations/ev_1"]),
        ("/v1/evaluations/", ["/v1/evaluations"]),
        ("/v1/dataset/tiny/leaderbord", ["/v1/datasets/tiny/leaderboard"]),
        ("/v1/evaluations/ev_1/captoins", ["/v1/evaluations/ev_1/captions"]),
        ("/livz", ["/livez"]),
        ("/v1/nothing/of/the/kind", []),
        ("/v1/evaluations/%1B[2J/caption", [r"/v1/evaluations/\x1b[2J/captions"]),
        ("/" + "v1/" * 20_000, []),
        ("/" + "a" * 60_000, []),
        ("/v1/datasets/tiny/test/leaderboard", ["/v1/datasets/tiny/leaderboard?split=test"]),
        ("/v1/datasets/tiny@v1/test/history", ["/v1/datasets/tiny@v1/history?split=test"]),
        ("/v1/leaderboard", ["/v1/datasets/{name}/leaderboard"]),
        ("/v1/captions", ["/v1/evaluations/{id}/captions"]),
        ("/api/v2/evaluations", ["/v1/evaluations"]),
        ("/v1/openapi.json", ["/openapi.json"]),
        ("/v1/docs", ["/docs"]),
        ("/v1/livez", ["/livez"]),
        ("/v1/healthz", ["/livez", "/readyz"]),
        ("/v1/datasets/tiny/test/health", ["/v1/probes?dataset=tiny"]),
        ("/v1/datasets/tiny/evaluations", ["/v1/evaluations?dataset=tiny"]),
        ("/v1/datasets/tiny/captions", ["/v1/datasets/tiny"]),
        ("/v1/evaluations/ev_1/scores", ["/v1/evaluations/ev_1"]),
        ("/v1/evaluations/ev_1/captions/", ["/v1/evaluations/ev_1/captions"]),
        ("/v1/evaluations/ev_1/tokens", ["/v1/evaluations/ev_1/tokens/{image}"]),
        ("/v1/checkpoints", ["/v1/checkpoints/{digest}"]),
        ("/v1/evaluations/ev_1/leaderboard", []),
        ("/v1/datasets/tiny/a/b/leaderboard", []),
        ("/v1/datasets/tiny/metrics", []),
        ("/v1/cancel", []),
        ("//", []),
    ],
)
def test_a_path_that_is_not_there_is_told_with_the_one_that_is_meant(client, path, meant):
    answer = client.get(httpx.URL(str(client.base_url).rstrip("/") + path))
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    said = answer.json()["detail"]
    assert re.findall("'([^']*)'", said.partition(";")[2].partition("? ")[0]) == meant
    assert said.endswith("The interface is under /v1; /docs describes it")
    assert len(said) < 400
    for one in meant:
        assert not one.startswith("/v1/") or client.get(one).json().get("detail", "") != said


@pytest.mark.parametrize(
    ("method", "path", "said"),
    [
        ("GET", "/v1/evaluations/{id}?wait=5", "expected metrics, found 'wait'"),
        (
            *("GET", "/v1/evaluations/{id}/captions?limt=2"),
            "invented, missed, format, limit or cursor, found 'limt'; did you mean limit?",
        ),
        ("GET", "/v1/evaluations/{id}/captions?label.a=b", "found 'label.a'"),
        ("POST", "/v1/evaluations/{id}/cancel?force=1", "found 'force'"),
        (
            *("GET", "/v1/datasets/tiny/leaderboard?metrik=cider_d"),
            "limit, cursor or label.NAME, found 'metrik'; did you mean metric or metrics?",
        ),
        (
            *("GET", "/v1/evaluations?label=branch=main"),
            "or label.NAME, found 'label'; did you mean 'label.branch=main'?",
        ),
        ("GET", "/v1/evaluations?label=main", "did you mean 'label.NAME=VALUE'?"),
    ],
)
def test_a_parameter_that_a_route_has_not_is_refused(client, evaluation, method, path, said):
    answer = client.request(method, path.format(id=evaluation))
    assert answer.status_code == 422
    problem = answer.json()
    assert said in problem["detail"]
    assert problem["errors"][0]["pointer"].startswith("/query/")


CSV = "; for CSV send the header `Accept: text/csv`"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("datasets/tiny/leaderboard?format=csv", f"or label.NAME, found 'format'{CSV}"),
        ("datasets/tiny/leaderboard?as=CSV", f"found 'as'{CSV}"),
        ("datasets/tiny/history?csv=1", f"or label.NAME, found 'csv'{CSV}"),
        ("datasets/tiny/correlations?accept=text/csv", f"found 'accept'{CSV}"),
        ("datasets/tiny/signal?csv=1", f"found 'csv'{CSV}"),
        ("evaluations/{id}/captions?format=csv", f"format: found 'csv'{CSV}"),
        ("evaluations/{id}/captions?type=csv", f"found 'type'{CSV}"),
    ],
)
def test_who_asks_for_csv_in_the_query_is_told_the_header(client, evaluation, path, said):
    answer = client.get(f"/v1/{path.format(id=evaluation)}")
    assert answer.status_code == 422
    assert answer.json()["detail"].endswith(said)
    (error,) = answer.json()["errors"]
    assert error["pointer"] == "/query/" + re.split("[?=]", path)[1]


@pytest.mark.parametrize(
    "path", ["evaluations?format=csv", "datasets/tiny?format=csv", "evaluations/{id}?as=csv"]
)
def test_where_there_is_no_csv_nobody_is_told_of_it(client, evaluation, path):
    answer = client.get(f"/v1/{path.format(id=evaluation)}")
    assert answer.status_code == 422
    assert "Accept" not in answer.json()["detail"]


def test_a_label_may_be_csv(client):
    path = "/v1/datasets/tiny/leaderboard?label.format=csv&metric=bleu_4"
    assert client.get(path).status_code == 200


def test_every_parameter_that_is_documented_is_taken(client, evaluation):
    for method, path, operation in interface.operations():
        names = [one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"]
        if method == "GET" and names:
            given = {"label.x" if name == "labels" else name: "\0" for name in names}
            answer = client.get(
                path.format(id=evaluation, name="tiny", image="0.jpg"), params=given
            )
            told = [error["detail"] for error in answer.json()["errors"]]
            assert "unknown" not in told, path


def test_health_may_be_asked_for_with_anything(client):
    assert client.get("/livez?from=a-load-balancer").status_code == 200


def test_json_in_a_coding_is_told_so_and_is_not_unpacked(client):
    packed = gzip.compress(b'{"dataset": "tiny/test"}')
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    answer = client.post("/v1/evaluations", content=packed, headers=headers)
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (415, "unsupported_media_type")
    assert "Content-Encoding 'gzip': send the JSON unpacked" in problem["detail"]
    plain = {**headers, "Content-Encoding": "Identity"}
    assert client.post("/v1/evaluations", content=b"{}", headers=plain).status_code == 422


def test_a_digest_in_capital_letters_is_told_to_be_in_lower_case(client):
    """It is a name: one file has one address."""
    digest = f"sha256:{'AB' * 32}"
    sent = client.post("/v1/evaluations", json={"dataset": "tiny/test", "checkpoint": digest})
    for answer in (sent, client.get(f"/v1/checkpoints/{digest}")):
        assert answer.status_code == 422
        assert "64 hex digits in lower case, found" in answer.text
