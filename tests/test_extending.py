"""A family of metrics and a tokeniser from outside: a row and a function each, and nothing else.

Where one of them is not seen, some table does not follow from the rows.
"""

import json

import httpx
import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from helpers.fleet import bundle_of
from service.contract.metrics import families, tokenizers
from service.contract.metrics.families import MetricRow
from service.contract.metrics.tokenizers import TokenizerRow
from service.http import app
from workers.bench.probing import constant_search
from workers.cli.judge import judge
from workers.metrics import postgen, tokens
from workers.metrics.family import FamilyFunctions, FamilyMeasures

PEOPLE = {
    "1.jpg": ["a dog sits", "the dog", "A brown dog"],
    "2.jpg": ["a cat", "two cats sleep", "a black cat sleeps"],
    "3.jpg": ["people walk", "a park", "people in a park"],
}
SAID = {"1.jpg": "a dog runs", "2.jpg": "two dogs", "3.jpg": "a park"}
OTHERS = {"1.jpg": "a dog", "2.jpg": "cat", "3.jpg": "in the garden"}
DEFINITION = "The mean over captions of the share of their words that a reference has, too."


def _share(caption, people):
    """The made-up metric by its definition."""
    known = {word for reference in people for word in reference.split()}
    return np.mean([word in known for word in caption.split()])


def _measure(task):
    pairs = enumerate(task.captions)
    shares = np.array([_share(said, task.references_of(place)) for place, said in pairs])
    return FamilyMeasures({"overlap": shares}, {"overlap": shares})


def _sum_up(statistics):
    return {"overlap": float(np.mean(statistics["overlap"]))}


@pytest.fixture
def overlap(monkeypatch):
    """All that a new family is."""
    row = families.MetricFamily((MetricRow("overlap", DEFINITION),), version=7)
    monkeypatch.setitem(families.FAMILIES, "overlap", row)
    monkeypatch.setitem(
        postgen.FAMILY_FUNCTIONS,
        "overlap",
        FamilyFunctions(_measure, lambda _: "case:kept", _sum_up),
    )


@pytest.fixture
def letters(monkeypatch):
    """All that a new tokeniser is."""
    monkeypatch.setitem(tokenizers.TOKENIZERS, "letters", TokenizerRow("letters1"))
    monkeypatch.setitem(tokens.TOKENIZERS, "letters", tokens.split_each(_letters))


def _letters(text):
    return [letter for letter in text.lower() if letter.isalpha()]


@pytest.fixture
def ask(serve_here, tmp_path):
    """A service in this process, which computes what it is asked for before it answers; on it the
    dataset `tiny`.
    """
    with serve_here(tmp_path) as service, httpx.Client(base_url=f"{service.url}/v1") as client:

        def ask(method, path, status=200, **body):
            found = client.request(method, path, **body)
            assert found.status_code == status, found.text
            return found.json()

        ask("PUT", "datasets/tiny", 201, content=bundle_of(PEOPLE))
        yield ask


def _asked(captions, **more):
    given = [{"image": image, "caption": text} for image, text in captions.items()]
    return {"dataset": "tiny/test", "captions": given, "tokenizer": "none", **more}


def _done(ask, kind, request):
    """The run, which has ended well."""
    found = ask("POST", kind, 202, json=request)
    found = ask("GET", f"{kind}/{found['id']}")
    assert found["status"] == "succeeded", found
    return found


def _judged(monkeypatch, tmp_path, *options):
    """What `prescore judge` says of four captions that people rated."""
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    lines = [
        {"candidate": text, "references": PEOPLE[image], "ratings": [rating]}
        for said, ratings in ((SAID, (3, 2, 4)), (OTHERS, (4, 3, 1)))
        for (image, text), rating in zip(said.items(), ratings, strict=True)
    ]
    path = tmp_path / "judged.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    command = typer.Typer()
    command.command()(judge)
    found = CliRunner().invoke(command, [str(path), "--json", *options])
    assert found.exit_code == 0, found.output
    return json.loads(found.stdout)


@pytest.mark.usefixtures("overlap")
def test_a_family_from_outside_is_listed_evaluated_compared_gated_and_probed(ask):
    (listed,) = (each for each in ask("GET", "metrics")["items"] if each["name"] == "overlap")
    assert (listed["definition"], listed["status"]) == (DEFINITION, "available")
    shares = [_share(said, PEOPLE[image]) for image, said in SAID.items()]
    gates = {"gates": ["overlap >= 0.99"], "postgen": ["bleu", "overlap"]}
    run = _done(ask, "evaluations", _asked(SAID, **gates))
    score = run["scores"]["overlap"]
    assert score["value"] == pytest.approx(np.mean(shares))
    assert score["signature"] == "overlap|refs:3|tok:none|case:kept|v:7"
    assert score["interval"][0] < score["value"] < score["interval"][1]
    assert run["verdict"] == "failed"
    rows = ask("GET", f"evaluations/{run['id']}/captions")["items"]
    assert [row["scores"]["overlap"] for row in rows] == pytest.approx(shares)
    other = _done(ask, "evaluations", _asked(OTHERS, postgen=["overlap"]))
    compared = _done(ask, "comparisons", {"a": run["id"], "b": other["id"]})
    expected = np.mean([_share(said, PEOPLE[image]) for image, said in OTHERS.items()])
    difference = compared["scores"]["overlap"]["difference"]
    assert difference == pytest.approx(np.mean(shares) - expected)
    asked = {"dataset": "tiny/test", "probes": ["human"], "metrics": ["overlap"]}
    run = _done(ask, "probes", {**asked, "tokenizer": "none"})
    (row,) = run["probes"]["human"]
    columns = [
        np.mean([_share(said[at], said[:at] + said[at + 1 :]) for said in PEOPLE.values()])
        for at in range(3)
    ]
    assert row["scores"]["overlap"] == pytest.approx(np.mean(columns))
    assert run["health"]["overlap"]["human_of_range"] == pytest.approx(np.mean(columns))


@pytest.mark.usefixtures("letters")
def test_a_tokeniser_from_outside_is_evaluated_and_probed_with(ask):
    """A reference in capitals and without blanks has the same letters, and no word of it."""
    shouted = {image: said[0].upper().replace(" ", "") for image, said in PEOPLE.items()}
    run, plain = (
        _done(ask, "evaluations", _asked(shouted, postgen=["bleu_1"]) | {"tokenizer": tokenizer})
        for tokenizer in ("letters", "none")
    )
    score = run["scores"]["bleu_1"]
    assert score["value"] == pytest.approx(1)
    assert "|tok:letters1|" in score["signature"]
    assert plain["scores"]["bleu_1"]["value"] == pytest.approx(0, abs=1e-6)
    asked = {"dataset": "tiny/test", "probes": ["human"], "metrics": ["bleu_1"]}
    table = _done(ask, "probes", {**asked, "tokenizer": "letters"})["probes"]["human"]
    assert "|tok:letters1|" in table[0]["signatures"]["bleu_1"]


@pytest.mark.usefixtures("overlap", "letters")
def test_rows_from_outside_are_published_and_taken_by_commands(monkeypatch, tmp_path):
    schemas = app.describe_api()["components"]["schemas"]
    for name in ("EvaluationRequest", "ProbesRequest", "TrainingRequest"):
        assert "letters" in schemas[name]["properties"]["tokenizer"]["enum"]
    named = schemas["EvaluationRequest"]["properties"]["postgen"]["items"]["anyOf"][0]["enum"]
    assert "overlap" in named
    found = _judged(monkeypatch, tmp_path, "--metrics", "overlap,rouge_l", "--tokenizer", "letters")
    assert "|tok:letters1|" in found["signatures"]["rouge_l"]
    shares = [
        _share(" ".join(_letters(text)), [" ".join(_letters(each)) for each in PEOPLE[image]])
        for said in (SAID, OTHERS)
        for image, text in said.items()
    ]
    expected = np.corrcoef(shares, [3, 2, 4, 4, 3, 1])[0, 1]
    assert found["rated"]["overlap"]["pearson"] == pytest.approx(expected)


def test_every_row_has_its_function_and_every_function_its_row():
    assert list(postgen.FAMILY_FUNCTIONS) == list(families.FAMILIES)
    assert list(tokens.TOKENIZERS) == list(tokenizers.TOKENIZERS)
    assert set(constant_search.OBJECTIVES) == set(families.list_searched_metrics())
    for name, row in families.FAMILIES.items():
        functions = postgen.FAMILY_FUNCTIONS[name]
        assert (functions.join is not None) == bool(row.made_of)
        assert (functions.corpus is not None) or not row.is_studied
