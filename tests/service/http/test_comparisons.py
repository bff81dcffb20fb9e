"""Comparisons: made from tasks' own files, kept, canceled, refused.

In process: what is compared, and what is said of it, is decided by the rules of runs and computed
by the jobs, both of which are those of the real fleet.
"""

import csv
import json
import re

import numpy as np
import pytest

import prescore
from helpers.builders import captions_with_references
from helpers.documents import fenced, read
from helpers.fleet import bundle, bundle_of, checkpoint, upload
from helpers.submissions import evaluate, finish, read_pages, run_command, serve_datasets
from prescore.models.comparisons import Compared
from workers.analysis import comparison
from workers.metrics import postgen, references
from workers.metrics.java.jvm import Jvm

WORDS = ["a", "man", "woman", "people", "dog", "runs", "sits", "on", "grass", "big"]
SAID, PEOPLE = captions_with_references(WORDS, 50, 0)
OTHERS = [PEOPLE[at][-1] if at % 3 else said for at, said in enumerate(SAID)]
IMAGES = {f"{at}.jpg": image for at, image in enumerate(PEOPLE)}
REQUEST = {
    "dataset": "tiny@v1/test",
    "postgen": ["bleu", "cider_d", "variety"],
    "tokenizer": "none",
}


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    yield from serve_datasets(serve_here, tmp_path_factory, tiny=bundle_of(IMAGES), seen=bundle(40))


def _given(captions, part=slice(None)):
    pairs = list(zip(IMAGES, captions, strict=True))[part]
    return [{"image": image, "caption": caption} for image, caption in pairs]


def _evaluate(client, captions, part=slice(None), **change):
    return evaluate(client, **{**REQUEST, "captions": _given(captions, part), **change})


@pytest.fixture(scope="module")
def two(service):
    with service.client() as client:
        return [_evaluate(client, captions) for captions in (SAID, OTHERS)]


def _compare(client, a, b, **more):
    return client.post("/v1/comparisons", json={"a": a["id"], "b": b["id"], **more})


def _ended(client, answer):
    assert answer.status_code == 202, answer.text
    return finish(client, answer.headers["Location"])


@pytest.fixture(scope="module")
def expected():
    """The same by the engine, from the texts."""
    with Jvm() as unused:
        refs = references.prepare_references(PEOPLE, "none", unused)
        return [
            [
                postgen.score_tokens(family, captions, refs, np.arange(50), unused)
                for family in ("bleu", "cider_d")
            ]
            for captions in (SAID, OTHERS)
        ]


PAGE = "deploy/guide/comparisons.md"


@pytest.mark.long
def test_the_program_of_the_guide_compares_two_files(
    service, client, tmp_path, monkeypatch, capsys
):
    (program,) = fenced(read(PAGE), "python")
    for name, captions in (("a", SAID), ("b", OTHERS)):
        (tmp_path / f"{name}.json").write_text(json.dumps(_given(captions)))
    assert client.put("/v1/datasets/flickr8k", content=bundle_of(IMAGES)).is_success
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRESCORE_URL", service.url)
    scope = {}
    exec(compile(program, PAGE, "exec"), scope)  # noqa: S102  our own document
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("cider_d -")
    assert lines[0].endswith(") differs")
    assert len(lines) == 2 + 5
    one = scope["found"].scores["cider_d"]
    assert one.difference == pytest.approx(one.a - one.b)


def test_the_guide_explains_each_number_of_a_comparison():
    rows = re.findall(r"(?m)^\| ((?:`\w+`(?:, )?)+) \|", read(PAGE))
    told = re.findall(r"\w+", " ".join(rows))
    assert sorted(told) == sorted(Compared.model_fields)


@pytest.mark.long
def test_two_evaluations_are_compared_image_by_image(client, two, expected):
    answer = _compare(client, *two, metrics=["bleu", "cider_d"])
    found = _ended(client, answer)
    again = _compare(client, *two, metrics=["cider_d"]).json()
    assert found["status"] == "succeeded", found["error"]
    assert (found["a"], found["b"]) == (two[0]["id"], two[1]["id"])
    for mine, others in zip(*expected, strict=True):
        for name, each in comparison.compare_scores(mine, others).items():
            shown = found["scores"][name]
            assert shown == {
                "a": pytest.approx(each.a),
                "b": pytest.approx(each.b),
                "difference": pytest.approx(each.difference),
                "interval": pytest.approx(each.interval),
                "p": each.p,
                "minimum_detectable": pytest.approx(each.minimum_detectable),
            }
    assert list(found["scores"]) == ["bleu_1", "bleu_2", "bleu_3", "bleu_4", "cider_d"]
    assert [task["cached"] for task in again["tasks"]] == [True]
    assert again["scores"]["cider_d"] == found["scores"]["cider_d"]


def test_the_images_that_moved_most_are_shown_with_both_captions(client, two, expected):
    found = _ended(client, _compare(client, *two, metrics=["cider_d"]))
    mine, others = (scored[1].captions["cider_d"] for scored in expected)
    order = np.argsort(-np.abs(mine - others), kind="stable")
    assert len(found["images"]) == 20
    for image, place in zip(found["images"], order, strict=False):
        assert image["image"] == f"{place}.jpg"
        assert (image["a"], image["b"]) == (SAID[place], OTHERS[place])
        moved = image["scores"]["cider_d"]
        assert moved["difference"] == pytest.approx(mine[place] - others[place])


@pytest.fixture(scope="module")
def place(service, two):
    """The images of a comparison by two metrics."""
    with service.client() as client:
        answer = _compare(client, *two, metrics=["bleu_2", "cider_d"])
        assert _ended(client, answer)["status"] == "succeeded"
    return f"{answer.headers['Location']}/images"


def _expected(client, two, metric):
    """Of the two evaluations' own answers, in the dataset's order."""
    a, b = (client.get(f"/v1/evaluations/{each['id']}/captions").json()["items"] for each in two)
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


@pytest.mark.parametrize(
    ("metric", "sort"),
    [("cider_d", None), ("cider_d", "difference"), ("bleu_2", "-a"), ("bleu_2", "b")],
)
def test_all_images_are_there_in_the_order_that_is_asked_for(client, place, two, metric, sort):
    expected = _expected(client, two, metric)
    if sort is not None:
        by = sort.removeprefix("-")
        scores = [item["scores"][metric] for item in expected]
        values = np.array([s["a"] - s["b"] if by == "difference" else s[by] for s in scores])
        order = np.argsort(values if sort == by else -values, kind="stable")
        expected = [expected[at] for at in order]
    query = {"metric": metric} | ({} if sort is None else {"sort": sort})
    pages = list(read_pages(client, place, limit=9, **query))
    assert {page["metric"] for page in pages} == {metric}
    assert [item for page in pages for item in page["items"]] == expected


def test_a_cursor_is_of_the_same_question_alone(client, place):
    cursor = client.get(place, params={"sort": "a", "limit": 3}).json()["next"]
    for other in ({"sort": "-a"}, {"sort": "a", "metric": "cider_d"}, {}):
        answer = client.get(place, params={**other, "cursor": cursor})
        assert (answer.status_code, answer.json()["code"]) == (400, "invalid_cursor")
    same = client.get(place, params={"sort": "a", "metric": "bleu_2", "cursor": cursor})
    assert len(same.json()["items"]) == 47


def test_a_metric_that_the_comparison_is_not_by_is_not_there(client, place):
    for metric, told in (("bleu_1", (404, "not_found")), ("cider_e", (422, "unknown_metric"))):
        answer = client.get(place, params={"metric": metric})
        assert (answer.status_code, answer.json()["code"]) == told
        assert "bleu_2, cider_d" in answer.json()["detail"]


@pytest.mark.long
def test_checkpoints_are_compared_by_what_they_think_of_peoples_captions(client):
    names = ["perplexity", "mean_max_normcount_prefix0", "sum_join_count_filter0"]
    found = []
    for seed in (1, 2):
        digest = upload(client, checkpoint(seed))
        found.append(evaluate(client, checkpoint=digest, dataset="seen/test", postgen=[]))
    compared = _ended(client, _compare(client, *found, metrics=names))
    missing = client.get(f"/v1/comparisons/{compared['id']}/images")
    usual = _ended(client, _compare(client, *found))
    assert compared["status"] == "succeeded", compared["error"]
    assert list(compared["scores"]) == names
    shown = compared["scores"]["perplexity"]
    assert shown["a"] == found[0]["scores"]["perplexity"]["value"]
    assert shown["interval"][0] < shown["difference"] < shown["interval"][1]
    assert compared["images"] == []
    assert missing.status_code == 404
    assert list(usual["scores"]) == list(found[0]["scores"])
    assert all(score["interval"] for score in found[0]["scores"].values())


@pytest.mark.long
def test_parts_are_compared_by_what_was_scored_alike(client):
    """What is refused: tests/golden."""
    asked = {"part": slice(5, 20), "subset": True}
    small = _evaluate(client, OTHERS, **asked)
    own = _evaluate(client, OTHERS, **asked, idf="subset")
    found = _ended(client, _compare(client, small, own, metrics=["bleu_4"]))
    assert found["scores"]["bleu_4"]["difference"] == 0


@pytest.mark.long
def test_the_client_waits_for_it_and_the_command_shows_it(service, two, tmp_path):
    ids = [each["id"] for each in two]
    with prescore.Client(service.url) as client:
        found = client.compare(*ids, metrics=["bleu_4", "cider_d"])
        assert client.comparison(found.id) == found
        with pytest.raises(prescore.Refused, match="has no score spice"):
            client.compare(*ids, metrics=["spice"])
    assert found.ended
    assert found.scores["cider_d"].p is not None
    command = ("compare", *ids, "--metrics")
    done = run_command(service, *command, "bleu_4, cider_d", "--csv", tmp_path / "f.csv")
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["a", "b", "on", "a", "bleu_4", "cider_d"]
    assert f"{found.scores['cider_d'].difference:+#.4g}" in lines[-1]
    with (tmp_path / "f.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["p"]) for row in rows] == [each.p for each in found.scores.values()]
    told = run_command(service, *command, "bleu_4,cider_d", "--json").stdout
    assert json.loads(told)["scores"] == {
        name: each.model_dump(mode="json") for name, each in found.scores.items()
    }
    moved = run_command(service, *command, "cider_d", "--images", 2).stdout
    assert moved.count("\n  a  ") == moved.count("\n  b  ") == 2
