"""`prescore judge` as a user calls it."""

import csv
import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from scipy import stats

from helpers import command_app, learned_models
from service.contract.assets import AssetFolders
from service.contract.formats import bundles
from workers.cli.judge import judge
from workers.metrics.accord import model
from workers.offline import assets

WORDS = ["a", "man", "woman", "dog", "cat", "runs", "sits", "on", "in", "the", "park", "red"]


def _judge(*arguments):
    return command_app.invoke(judge, "--tokenizer", "none", *arguments)


def _found(*arguments):
    result = _judge("--json", *arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def _write(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def _lines(many=40, seed=0):
    """Rated and judged captions of a dozen images."""
    rng = np.random.default_rng(seed)
    images = [[" ".join(rng.choice(WORDS, 8)) for _ in range(5)] for _ in range(12)]
    lines = []
    for at in range(many):
        people = images[at % 12]
        good, bad = people[0].split(), list(rng.choice(WORDS, 8))
        shared = int(rng.integers(0, 9))
        text = " ".join(good[:shared] + bad[shared:])
        ratings = np.clip(shared // 2 + rng.integers(-1, 2, 3), 1, 4).tolist()
        lines.append({"candidate": text, "references": people, "ratings": ratings})
        pair = {"a": text, "b": " ".join(bad), "preferred": "a", "category": f"C{at // 5 % 2}"}
        lines.append({"references": people, **pair})
    return lines


@pytest.fixture
def file(tmp_path):
    return _write(tmp_path / "judgements.jsonl", _lines())


def test_raters_are_taken_as_asked(file):
    """The most frequent rating; of equals the lowest. The other rules: test_scoring.py."""
    rated = [line for line in _lines() if "ratings" in line]
    ratings = [line["ratings"] for line in rated]
    modes = [max(sorted(set(each)), key=each.count) for each in ratings]
    scores = [_unigrams(line) for line in rated]
    expected = stats.kendalltau(scores, modes, variant="c").statistic
    row = _found(file, "--metrics", "bleu_1", "--raters", "mode")["rated"]["bleu_1"]
    assert row["kendall_c"] == pytest.approx(expected, rel=1e-9)


def _unigrams(line):
    """BLEU-1 where all captions have eight words."""
    words = line["candidate"].split()
    most = {word: max(text.split().count(word) for text in line["references"]) for word in words}
    return sum(min(words.count(word), times) for word, times in most.items()) / 8


def test_frequencies_of_a_dataset(file, tmp_path):
    items = [bundles.BundleItem(f"{at}", "train", (f"a {word}",)) for at, word in enumerate(WORDS)]
    bundles.write_bundle_folder(tmp_path / "set", items)
    own, others = (
        _found(file, "--metrics", "cider_d", *options)
        for options in ((), ("--idf", tmp_path / "set/train"))
    )
    assert "|df:corpus(n=12)|" in own["signatures"]["cider_d"]
    assert f"|refs:5|tok:none|df:given(n={len(WORDS)})|" in others["signatures"]["cider_d"]
    assert own["rated"] != others["rated"]
    assert _found(file, "--metrics", "cider_d", "--idf", tmp_path / "set") == others
    assert "expected a split of" in _judge(file, "--idf", tmp_path / "set/x").stderr


def test_tables_files_and_pictures_say_the_same(file, tmp_path):
    paths = {name: tmp_path / name for name in ("t.json", "t.csv", "t.svg")}
    options = ("--json-out", paths["t.json"], "--csv", paths["t.csv"], "--plot", paths["t.svg"])
    result = _judge(file, "--metrics", "rouge_l", *options)
    assert result.exit_code == 0, result.output
    found = json.loads(paths["t.json"].read_text())
    tau, bounds = (found["rated"]["rouge_l"][name] for name in ("kendall_c", "intervals"))
    assert (
        f"{tau:.3f} [{bounds['kendall_c'][0]:.3f}, {bounds['kendall_c'][1]:.3f}]" in result.stdout
    )
    worst = found["pairs"]["rouge_l"]["worst"]
    low, high = worst["interval"]
    shown = f"{worst['accuracy']:.3f} [{low:.3f}, {high:.3f}] ({worst['ties']:.3f})"
    assert f"{shown} {worst['category']}" in result.stdout
    low, high = worst["half_interval"]
    shown = f"{worst['half']:.3f} [{low:.3f}, {high:.3f}] {worst['half_category']}"
    assert shown in result.stdout
    table = list(csv.DictReader(paths["t.csv"].read_text().splitlines()))
    rows = {row["what"]: row for row in table if row["kind"] in ("rated", "pairs")}
    halves = {row["what"]: row for row in table if row["kind"] == "pairs-half"}
    assert float(halves["C1"]["value"]) == found["pairs"]["rouge_l"]["C1"]["half"]
    assert float(rows["kendall_c"]["value"]) == tau
    assert float(rows["kendall_c"]["low"]) == bounds["kendall_c"][0]
    assert float(rows["C1"]["ties"]) == found["pairs"]["rouge_l"]["C1"]["ties"]
    picture = ET.fromstring(paths["t.svg"].read_text())  # noqa: S314  our own
    texts = [node.text for node in picture.iter() if node.text]
    assert {"rouge_l", "Kendall c", "C1", "C1, a tie is half"} <= set(texts)
    assert f"{tau:.3f}" in texts


def test_every_lines_scores_are_told_with_its_number(file, tmp_path):
    path = tmp_path / "t.csv"
    found = _found(file, "--metrics", "bleu_1", "--csv", path)
    rated = [line for line in _lines() if "ratings" in line]
    lines = found["lines"]["rated"]
    assert lines["line"] == list(range(1, 80, 2))
    assert lines["scores"]["bleu_1"] == pytest.approx([_unigrams(line) for line in rated])
    pairs = found["lines"]["pairs"]
    assert pairs["line"] == list(range(2, 81, 2))
    first = _lines()[1]
    expected = [_unigrams(first | {"candidate": first[side]}) for side in "ab"]
    assert pairs["scores"]["bleu_1"][0] == pytest.approx(expected, abs=1e-9)
    table = [row for row in csv.DictReader(path.read_text().splitlines()) if row["line"]]
    assert {row["kind"] for row in table} == {"score"}
    of_b = {int(row["line"]): float(row["value"]) for row in table if row["what"] == "b"}
    assert of_b == {
        line: scores[1]
        for line, scores in zip(pairs["line"], pairs["scores"]["bleu_1"], strict=True)
    }


def test_metrics_are_tested_against_the_best_or_against_a_chosen_one(file, tmp_path):
    path = tmp_path / "t.csv"
    found = _found(file, "--metrics", "bleu_1,bleu_4", "--csv", path)
    rated = {name: row["pearson"] for name, row in found["rated"].items()}
    best, other = sorted(rated, key=rated.get, reverse=True)
    compared = found["comparisons"]["rated"]["pearson"]
    assert compared["against"] == best
    assert list(compared["metrics"]) == [other]
    row = compared["metrics"][other]
    assert row["difference"] == pytest.approx(rated[other] - rated[best])
    assert row["interval"][0] < row["difference"] < row["interval"][1]
    shown = f"{row['difference']:+.3f} [{row['interval'][0]:.3f}, {row['interval'][1]:.3f}]"
    assert shown in _judge(file, "--metrics", "bleu_1,bleu_4").stdout
    (told,) = [
        each
        for each in csv.DictReader(path.read_text().splitlines())
        if (each["kind"], each["what"]) == ("rated-difference", "pearson")
    ]
    assert (told["metric"], told["against"]) == (other, best)
    assert float(told["p"]) == row["p"]
    chosen = _found(file, "--metrics", "bleu_1", "--against", "rouge_l")
    assert set(chosen["rated"]) == {"bleu_1", "rouge_l"}
    for kinds in chosen["comparisons"]["pairs"].values():
        assert {each["against"] for each in kinds.values()} == {"rouge_l"}
    refused = _judge(file, "--against", "bleu")
    assert refused.exit_code == 2
    assert "expected one metric, bleu is several" in refused.stderr


def test_lines_may_name_their_image_and_their_system(tmp_path):
    lines = [line for line in _lines(60) if "ratings" in line]
    for at, line in enumerate(lines):
        line |= {"image": f"{at % 11}.jpg", "system": f"s{at % 4}"}
    found = _found(_write(tmp_path / "s.jsonl", lines), "--metrics", "bleu_1,rouge_l")
    assert found["rated"]["bleu_1"]["clusters"] == 11
    means = [np.mean([np.mean(line["ratings"]) for line in lines[at::4]]) for at in range(4)]
    assert list(found["systems"]["ratings"].values()) == pytest.approx(means)
    scores = [np.mean([_unigrams(line) for line in lines[at::4]]) for at in range(4)]
    row = found["systems"]["metrics"]["bleu_1"]
    assert row["pearson"] == pytest.approx(np.corrcoef(scores, means)[0, 1])
    assert (
        "Means of 4 systems over 60 lines"
        in _judge(tmp_path / "s.jsonl", "--metrics", "bleu_1").stdout
    )


def test_a_file_without_an_answer_gets_a_word_instead(tmp_path):
    line = {"candidate": "a cat", "references": ["the cat"], "rating": 3}
    told = _judge(_write(tmp_path / "few.jsonl", [line]), "--metrics", "cider_d").stdout
    assert "1 rating: a correlation needs at least 3" in told


@pytest.mark.usefixtures("places")
def test_what_is_unavailable_is_said_and_the_others_are_judged(file):
    result = _judge(file, "--metrics", "spice,bleu_1", "--json")
    assert result.exit_code == 0
    assert "prescore assets" in json.loads(result.stdout)["missing"]["spice"]["detail"]
    assert "unavailable: spice: CoreNLP" in result.stderr
    alone = _judge(file, "--metrics", "spice")
    assert alone.exit_code == 3
    assert "none of these metrics could be computed" in alone.stderr


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Nothing is here but what a test registers."""
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PRESCORE_ASSETS", raising=False)
    return AssetFolders(tmp_path / "home")


def test_a_model_of_accord_is_judged_by_its_name_and_without(file, places, tmp_path):
    path = tmp_path / "own.safetensors"
    model.write_accord(path, learned_models.of_accord())
    digest = assets.add_asset("learned", path, places)["accord"].sha256
    name = f"accord@{digest[:12]}"
    found = _found(file, "--metrics", f"accord,accord@{digest},cider_d", "--against", name)
    assert found["rated"][name] == found["rated"]["accord"] != found["rated"]["cider_d"]
    assert found["signatures"][name] == found["signatures"]["accord"]
    assert found["comparisons"]["rated"]["kendall_c"]["against"] == name
    other = _judge(file, "--metrics", f"accord@{'0' * 12}")
    assert f"of learned metrics there are: {name}" in other.stderr


def test_tasks_are_made_from_a_dataset_and_judged(tmp_path):
    items = [
        bundles.BundleItem(
            f"{at}", "test", (f"A {who} walks in the {place}", f"a {who} at the {place}")
        )
        for at, (who, place) in enumerate(
            [("man", "park"), ("woman", "kitchen"), ("girl", "snow")] * 4
        )
    ]
    bundles.write_bundle_folder(tmp_path / "set", items)
    made = ("--distractors", tmp_path / "set/test", "--metrics", "bleu_1")
    files = [tmp_path / f"{name}.jsonl" for name in "abc"]
    found = _found(files[0], *made, "--seed", 3)
    assert found["distractors"] == {"dataset": str(tmp_path / "set/test"), "seed": 3}
    assert set(found["pairs"]["bleu_1"]) > {"replace-person", "share-scene", "just-scene"}
    _judge(files[1], *made, "--seed", 3)
    _judge(files[2], *made, "--seed", 4)
    texts = [each.read_text() for each in files]
    assert texts[0] == texts[1] != texts[2]
    assert json.loads(texts[0].split("\n")[0])["seed"] == 3
    again = _judge(files[0], *made)
    assert again.exit_code == 2
    assert "expected the name of a new file" in again.stderr
    assert files[0].read_text() == texts[0]


@pytest.mark.long
@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--metrics", "ciderd"), 2, "did you mean cider_d"),
        (("--metrics", " , "), 2, "expected names of metrics"),
        (("--raters", "median"), 2, "median"),
        (("--json-out", "/nowhere/f"), 2, "expected a folder for f, found none at /nowhere"),
        (("--distractors", "/nowhere/test", "--url", "http://127.0.0.1:9"), 2, "no bundle at"),
    ],
)
def test_what_is_refused_and_what_is_misused(file, options, code, said):
    result = _judge(file, *options)
    assert result.exit_code == code, result.output
    assert said in result.stderr
    assert not result.stdout
