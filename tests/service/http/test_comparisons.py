"""Comparisons: made from tasks' own files, kept, canceled, refused.

In process: what is compared, and what is said of it, is decided by the rules of runs and computed
by the jobs, both of which are those of the real fleet.
"""

import csv
import json
import random
import re
from collections import Counter

import numpy as np
import pytest

import prescore
from helpers.builders import captions_with_references
from helpers.documents import fenced, read
from helpers.fleet import bundle, bundle_of, checkpoint, upload
from helpers.submissions import evaluate, finish, read_pages, run_command, serve_datasets
from oracles import plain_words
from prescore.models.comparisons import Compared
from service.runs import scored_captions, word_exchanges
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
            "exchanges": [
                list(pair) for pair in sorted(plain_words.exchanges(x["caption"], y["caption"]))
            ],
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


def _count_exchanges(pairs, limit=10):
    found = Counter(pair for a, b in pairs for pair in plain_words.exchanges(a, b))
    rows = [
        {"a": a, "b": b, "images": many, "reverse": back, "excess": many - back}
        for (a, b), many in found.items()
        if many > 1 and many > (back := found.get((b, a), 0))
    ]
    rows.sort(key=lambda row: (-row["excess"], -row["images"], row["a"], row["b"]))
    return rows[:limit]


def _draw_captions(seed, colours):
    rng = random.Random(seed)
    things = ["dog", "dog", "bus", "man"]
    return [
        f"a {rng.choice(colours)} {rng.choice(things)} on the {rng.choice(['grass', 'road'])}"
        for _ in IMAGES
    ]


REDDER = _draw_captions(1, ["red", "red", "blue", "green"])
BLUER = _draw_captions(2, ["red", "blue", "blue", "the"])
REDDER[-1], BLUER[-1] = "a purple dog", "a yellow dog"  # of one image alone


@pytest.fixture(scope="module")
def colours(service):
    """A comparison of captions that differ in single words, and its two evaluations."""
    with service.client() as client:
        two = [_evaluate(client, captions) for captions in (REDDER, BLUER)]
        found = _ended(client, _compare(client, *two, metrics=["bleu_2", "cider_d"]))
    return found["id"], two


def _exchanges(client, identity, **query):
    answer = client.get(f"/v1/comparisons/{identity}/words", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_exchanged_words_are_those_of_a_plain_implementation(client, colours):
    expected = _count_exchanges(zip(REDDER, BLUER, strict=True), 1000)
    assert len(expected) > 4
    assert expected[0]["reverse"] > 0
    for limit in (1, 3, 1000):
        found = _exchanges(client, colours[0], limit=limit)
        assert found == {"items": expected[:limit], "images": 50}
    assert _exchanges(client, colours[0])["items"] == expected[:10]


def test_exchanged_words_are_of_images_with_a_score(client, service, colours):
    identity, (one, _) = colours
    scored = scored_captions.find_scored_captions(service.parts, one["id"])
    file, tensor = scored.scores["cider_d"]
    bits = file._path.read_bytes()
    try:
        with file._path.open("r+b") as stream:
            stream.seek(file.header.data_start + file.header.tensors[tensor].start)
            stream.write(np.full(20, np.nan).tobytes())
        found = _exchanges(client, identity, metric="cider_d")
    finally:
        file._path.write_bytes(bits)
    pairs = list(zip(REDDER, BLUER, strict=True))
    assert found == {"items": _count_exchanges(pairs[20:]), "images": 30}
    every = {"items": _count_exchanges(pairs), "images": 50}
    assert _exchanges(client, identity, metric="bleu_2") == every


def test_exchanged_words_are_of_the_first_images(client, colours, monkeypatch):
    monkeypatch.setattr(word_exchanges, "MOST_IMAGES", 30)
    expected = _count_exchanges(list(zip(REDDER, BLUER, strict=True))[:30])
    for query in ({}, {"metric": "bleu_2"}):
        found = _exchanges(client, colours[0], **query)
        assert found == {"items": expected, "images": 30}


def test_the_same_captions_exchange_no_words(client, two):
    twin = _ended(client, _compare(client, two[0], two[0], metrics=["cider_d"]))
    assert _exchanges(client, twin["id"]) == {"items": [], "images": 50}


def test_exchanged_words_by_what_is_not_there_are_refused(client, colours):
    words = f"/v1/comparisons/{colours[0]}/words"
    queries = {"bleu_1": (404, "not_found"), "cider_e": (422, "unknown_metric")}
    for metric, told in queries.items():
        answer = client.get(words, params={"metric": metric})
        assert (answer.status_code, answer.json()["code"]) == told
    for limit in (0, 1001, "x"):
        assert client.get(words, params={"limit": limit}).status_code == 422


def test_the_client_lists_exchanged_words(service, colours):
    with prescore.Client(service.url) as client:
        found = client.exchanged_words(colours[0], limit=2)
    expected = _count_exchanges(zip(REDDER, BLUER, strict=True), 2)
    assert [each.model_dump() for each in found.items] == expected


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
