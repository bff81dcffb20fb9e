"""The images that fell most against the baseline: found by the service, shown in all reports.

Which they are, and their scores, is told by CIDEr-D's definition, image by image.
"""

import json
import re
from urllib.parse import unquote, urlsplit

import httpx
import pytest

from client.junit_schema import validate
from helpers.builders import captions_with_references
from helpers.fleet import bundle_of
from helpers.submissions import evaluate, run_command, serve_datasets
from oracles import caption_definitions
from service.runs import run_store

WORDS = ["a", "man", "woman", "people", "dog", "runs", "sits", "on", "grass", "big"]
_, PEOPLE = captions_with_references(WORDS, 40, 0)
ODD = "a folder/<b>|ö #5?.jpg"
IMAGES = {ODD if at == 5 else f"{at}.jpg": image for at, image in enumerate(PEOPLE)}
NAMES = list(IMAGES)
BEFORE = [people[0] for people in PEOPLE]
GATES = ("cider_d >= baseline - 0.01", "not_worse(cider_d, bleu_4, 2 %)", "bleu_1 >= 0.1")


def _score_plainly(captions):
    """The oracle's scores; it knows no punctuation."""
    words = [re.sub(r"[^\w ]", " ", text) for text in captions]
    return caption_definitions.cider_d(words, PEOPLE, PEOPLE)


NONSENSE = {5: "`zebra` | <b>", 17: "zebra " * 50, 11: "zebra"}
CHANGED = {7: "woman man on grass big dog sits", 9: "on big on", **NONSENSE}
NOW = [CHANGED.get(at, said) for at, said in enumerate(BEFORE)]
SCORES = [(now, before) for now, before in zip(*map(_score_plainly, (NOW, BEFORE)), strict=True)]
WORST = sorted(range(40), key=lambda at: SCORES[at][0] - SCORES[at][1])[:3]


@pytest.fixture(scope="module")
def service(serve_here, tmp_path_factory):
    yield from serve_datasets(serve_here, tmp_path_factory, tiny=bundle_of(IMAGES))


@pytest.fixture(scope="module")
def client(service):
    with service.client() as client:
        yield client


def _request(captions, **more):
    pairs = [{"image": name, "caption": text} for name, text in zip(NAMES, captions, strict=True)]
    given = {"dataset": "tiny/test", "postgen": ["bleu", "cider_d"], "tokenizer": "none"}
    return {**given, "captions": pairs, **more}


@pytest.fixture(scope="module")
def baseline(client):
    return evaluate(client, **_request(BEFORE, labels={"branch": "main"}))["id"]


def _drops(client, evaluation):
    answer = client.get(f"/v1/evaluations/{evaluation['id']}/drops")
    assert answer.status_code == 200, answer.text
    return answer.json()


NONE = {"gate": None, "metric": None, "baseline": None, "images": []}


def test_reports_name_the_three_images_that_fell_most(
    service, client, baseline, tmp_path, monkeypatch
):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary"))
    captions = _request(NOW)["captions"]
    (tmp_path / "results.json").write_text(json.dumps(captions))
    gates = [word for gate in GATES for word in ("--gate", gate)]
    asked = (
        "--dataset",
        "tiny/test",
        "--baseline",
        "branch=main",
        "--tokenizer",
        "none",
        "--postgen",
        "none",
    )
    junit = ("--junit", tmp_path / "gates.xml")
    result = run_command(service, "gate", tmp_path / "results.json", *asked, *gates, *junit, code=1)

    lines = result.stdout.splitlines()
    start = lines.index(f"images that fell most by cider_d against {baseline}")
    shown = lines[start + 1 : -1]
    assert len(shown) == 4 * 3
    gates_shown = lines[lines.index("gates") + 1 :][: 1 + 4]  # a heading, a row for each metric
    assert max(map(len, gates_shown)) <= 100
    latest = client.get("/v1/evaluations").json()["items"][0]["id"]
    page = f"{service.url}/ui/evaluations/{latest}"
    for at, start_of_image in zip(WORST, range(0, 12, 4), strict=True):
        image, before, now, url = shown[start_of_image : start_of_image + 4]
        low, high = SCORES[at]
        assert image.split() == [*NAMES[at].split(), f"{high:#.4g}", "->", f"{low:#.4g}"]
        assert before == f"    before  {BEFORE[at]}"
        cut = NOW[at].strip() if len(NOW[at]) <= 200 else f"{NOW[at][:199]}…"
        assert now.strip() == f"now     {cut}"
        link = urlsplit(url.strip())
        assert url.strip().startswith(f"{page}/images/")
        assert unquote(link.path.rpartition("/images/")[2]) == NAMES[at]
        assert link.query == f"with={baseline}"
        assert httpx.get(url.strip()).status_code == 200
    assert set(WORST) == set(NONSENSE)

    first, second, third = validate((tmp_path / "gates.xml").read_bytes()).iter("testcase")
    failure = first.find("failure").text.splitlines()
    assert failure[1:-1] == lines[start:-1]
    for case in (second, third):
        assert "fell most" not in "".join(case.itertext())
    (annotation,) = [line for line in result.stderr.splitlines() if "fell most" in line]
    assert annotation.startswith(f"::error title=prescore gate::{GATES[0]}: cider_d")
    summary = (tmp_path / "summary").read_text("utf-8")
    assert summary.count(f"?with={baseline}>)") == 3
    table = summary[summary.index("#### images that fell most by cider\\_d") :].splitlines()
    rows = [line for line in table if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in rows} == {5}
    assert "`b`" not in summary


def test_no_images_are_told_where_nothing_is_stored_of_them(service, client, baseline):
    gates = {"gates": [GATES[0]]}
    other = evaluate(client, **_request(BEFORE, labels={"branch": "short"}))
    fell = evaluate(client, **_request(NOW, **gates, baseline=other["id"]))
    assert [each["image"] for each in _drops(client, fell)["images"]] == [NAMES[at] for at in WORST]
    assert _drops(client, other) == NONE
    risen = evaluate(client, **_request(BEFORE, **gates, baseline=fell["id"]))
    assert _drops(client, risen) == NONE
    by_nothing = evaluate(client, **_request(NOW, gates=["cider_d >= 9"]))
    assert _drops(client, by_nothing) == NONE
    elsewise = _request(NOW, **gates, baseline=other["id"], tokenizer="ptb")
    assert _drops(client, evaluate(client, **elsewise)) == NONE
    assert client.delete(f"/v1/evaluations/{other['id']}").status_code == 204
    assert _drops(client, fell) == NONE


def test_images_are_those_of_the_gate_that_failed_first(client, baseline):
    gates = ["bleu_1 >= baseline - 0.9", "no_significant_drop(bleu_4)", "bleu_2 >= baseline"]
    found = _drops(client, evaluate(client, **_request(NOW, gates=gates, baseline=baseline)))
    verdicts = [gates[2], "bleu_2"]
    assert [found["gate"], found["metric"], found["baseline"]] == [*verdicts, baseline]
    passed = evaluate(client, **_request(NOW, gates=gates[:1], baseline=baseline))
    assert passed["verdict"] == "passed"
    assert _drops(client, passed)["gate"] == gates[0]


def test_stored_scores_that_are_gone_leave_images_out(service, client, baseline):
    fell = evaluate(client, **_request([*NOW[:-1], "w"], gates=[GATES[0]], baseline=baseline))
    (task,) = [task for task in fell["tasks"] if task["kind"] == "cider_d"]
    digest = run_store.find_result(service.records, fell["id"], task["name"])
    service.parts.blobs.path(digest).unlink()
    assert _drops(client, fell) == NONE
