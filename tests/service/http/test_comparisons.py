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
from helpers.submissions import evaluate, finish, run_command, serve_datasets
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
def test_the_program_of_the_guide_compares_two_files(service, tmp_path, monkeypatch, capsys):
    (program,) = fenced(read(PAGE), "python")
    for name, captions in (("a", SAID), ("b", OTHERS)):
        (tmp_path / f"{name}.json").write_text(json.dumps(_given(captions)))
    with service.client() as client:
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
def test_two_evaluations_are_compared_image_by_image(service, two, expected):
    with service.client() as client:
        answer = _compare(client, *two, metrics=["bleu", "cider_d"])
        identity = answer.json()["id"]
        assert answer.headers["Location"] == f"/v1/comparisons/{identity}"
        found = _ended(client, answer)
        again = _compare(client, *two, metrics=["cider_d"]).json()
        polled = client.get(f"/v1/comparisons/{identity}")
        tag = {"If-None-Match": polled.headers["ETag"]}
        same = client.get(f"/v1/comparisons/{identity}", headers=tag)
        missing = client.get(f"/v1/evaluations/{identity}")
        listed = client.get("/v1/evaluations").json()["items"]
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
    assert same.status_code == 304
    assert missing.status_code == 404
    assert {item["id"][:3] for item in listed} == {"ev_"}


def test_the_images_that_moved_most_are_shown_with_both_captions(service, two, expected):
    with service.client() as client:
        found = _ended(client, _compare(client, *two, metrics=["cider_d"]))
    mine, others = (scored[1].captions["cider_d"] for scored in expected)
    order = np.argsort(-np.abs(mine - others), kind="stable")
    assert len(found["images"]) == 20
    for image, place in zip(found["images"], order, strict=False):
        assert image["image"] == f"{place}.jpg"
        assert (image["a"], image["b"]) == (SAID[place], OTHERS[place])
        moved = image["scores"]["cider_d"]
        assert moved["difference"] == pytest.approx(mine[place] - others[place])


def test_by_default_what_both_show_is_compared_and_what_has_no_sum_has_no_test(service, two):
    with service.client() as client:
        found = _ended(client, _compare(client, *two))
    assert list(found["scores"]) == list(two[0]["scores"])
    assert found["scores"]["caption_length"]["p"] is not None
    words = found["scores"]["words_used"]
    assert (words["interval"], words["p"], words["minimum_detectable"]) == (None, None, None)
    assert words["difference"] == words["a"] - words["b"]


@pytest.mark.long
def test_checkpoints_are_compared_by_what_they_think_of_peoples_captions(service):
    names = ["perplexity", "mean_max_normcount_prefix0", "sum_join_count_filter0"]
    with service.client() as client:
        found = []
        for seed in (1, 2):
            digest = upload(client, checkpoint(seed))
            found.append(evaluate(client, checkpoint=digest, dataset="seen/test", postgen=[]))
        compared = _ended(client, _compare(client, *found, metrics=names))
        usual = _ended(client, _compare(client, *found))
        answer = _compare(client, *found, metrics=["perplexity", "max_max_prob_none"])
    assert compared["status"] == "succeeded", compared["error"]
    assert list(compared["scores"]) == names
    shown = compared["scores"]["perplexity"]
    assert shown["a"] == found[0]["scores"]["perplexity"]["value"]
    assert shown["interval"][0] < shown["difference"] < shown["interval"][1]
    assert compared["images"] == []
    assert list(usual["scores"]) == list(found[0]["scores"])
    assert all(score["interval"] for score in found[0]["scores"].values())
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["pointer"] == "/metrics/1"
    assert "max_max_prob_none cannot be compared" in answer.json()["detail"]


@pytest.mark.long
def test_what_was_not_scored_alike_is_refused_and_the_field_named(service, two):
    part = slice(5, 20)
    with service.client() as client:
        own = _evaluate(client, OTHERS, part, subset=True, idf="subset")
        small = _evaluate(client, OTHERS, part, subset=True)
        near = _evaluate(client, OTHERS, slice(6, 21), subset=True)
        tokens = _evaluate(client, OTHERS, tokenizer="ptb")
        client.put("/v1/datasets/tiny", content=bundle_of({**IMAGES, "x.jpg": ["a dog"]}))
        other = _evaluate(client, OTHERS, dataset="tiny@v2/test", subset=True)
        refused = {
            "df: corpus(n=50) and subset(n=15)": _compare(client, two[0], own),
            "tok: none and ptb": _compare(client, two[0], tokens, metrics=["bleu_1"]),
            "different images: 35 that b does not": _compare(
                client, two[0], small, metrics=["bleu_1"]
            ),
            "1 that b does not, 1 that a does not": _compare(client, small, near),
            "which has other captions": _compare(client, two[0], other),
            "has no score spice": _compare(client, *two, metrics=["spice"]),
        }
        fine = _ended(client, _compare(client, small, own, metrics=["bleu_4"]))
    assert fine["scores"]["bleu_4"]["difference"] == 0
    for said, answer in refused.items():
        assert answer.status_code == 422, said
        assert said in answer.json()["detail"]
        assert answer.json()["errors"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"a": "ev_nobody"}, 404),
        ({"b": "pb_nobody"}, 404),
        ({"metrics": []}, 422),
    ],
)
def test_what_is_no_comparison_is_refused(service, two, change, status):
    request = {"a": two[0]["id"], "b": two[1]["id"], **change}
    with service.client() as client:
        assert client.post("/v1/comparisons", json=request).status_code == status
        assert client.get("/v1/comparisons/cp_nobody").status_code == 404
        assert client.get("/v1/comparisons/ev_nobody").status_code == 404


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


def test_the_command_says_what_it_cannot_compare(service, two):
    done = run_command(service, "compare", two[0]["id"], "ev_nobody", code=2)
    assert "no evaluation 'ev_nobody'" in done.stderr
    run_command(service, "compare", two[0]["id"], code=2)
