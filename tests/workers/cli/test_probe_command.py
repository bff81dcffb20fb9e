"""`prescore probe` on made-up captions; what its tables hold is tested with the engine."""

import csv
import hashlib
import json
import re

import pytest
from typer.testing import CliRunner

from helpers import command_app, learned_models
from helpers.builders import captions_with_references
from service.contract.assets import AssetFolders
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from workers.metrics.accord import model
from workers.metrics.learned import nneval
from workers.offline import assets

WORDS = ["a", "the", "man", "woman", "people", "dog", "runs", "sits", "on", "grass"]
SAID, PEOPLE = captions_with_references(WORDS, 40, 0)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tiny")
    _, learned = captions_with_references(WORDS, 60, 1)
    items = [BundleItem(f"{at}.jpg", "test", ("a dog", *image)) for at, image in enumerate(PEOPLE)]
    items += [BundleItem(f"t{at}.jpg", "train", tuple(image)) for at, image in enumerate(learned)]
    bundles.write_bundle_folder(folder, items)
    given = [{"image": f"{at}.jpg", "caption": said} for at, said in enumerate(SAID)]
    (folder / "outputs.json").write_text(json.dumps(given))
    return folder


def _probe(home, monkeypatch, *arguments):
    usual = ("--metrics", "bleu_4,cider_d", "--tokenizer", "none")
    return _run(home, monkeypatch, *arguments, *usual)


def _run(home, monkeypatch, *arguments):
    monkeypatch.setenv("PRESCORE_HOME", str(home))
    monkeypatch.delenv("PRESCORE_URL", raising=False)
    monkeypatch.setenv("PRESCORE_ASSETS", "")
    return CliRunner().invoke(command_app.prescore(), ["probe", *arguments])


def test_every_probe_has_its_table_and_every_metric_its_health(home, folder, monkeypatch, tmp_path):
    asked = (f"{folder}/test", "--captions", str(folder / "outputs.json"), "--json")
    done = _probe(home, monkeypatch, *asked, "--csv", str(tmp_path / "table.csv"))
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    names = ["human", "frequent", "rare", "swap", "random", "single"]
    assert list(found["probes"]) == names
    assert [row["name"] for row in found["probes"]["human"]] == ["RvR", "SvR"]
    assert len(found["probes"]["frequent"]) == 6
    assert len(found["probes"]["rare"]) == 5
    single = found["probes"]["single"][0]
    assert single["text"]
    assert set(single["scores"]) == {"bleu_4", "cider_d"}
    assert set(found["health"]) == {"bleu_4", "cider_d"}
    assert found["health"]["bleu_4"]["constant"] == single["scores"]["bleu_4"]
    with (tmp_path / "table.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert {row["probe"] for row in table} == set(names)
    assert all(row["score"] or row["reason"] for row in table)
    again = _probe(home, monkeypatch, *asked)
    again = json.loads(again.stdout)
    assert {task["cached"] for task in again["tasks"]} == {True}
    assert (again["probes"], again["health"]) == (found["probes"], found["health"])


def test_options_reach_their_probes(home, folder, monkeypatch):
    asked = ("--probes", "frequent,swap", "--frequent", "2", "--swap", "dog=cat,runs=sits")
    done = _probe(home, monkeypatch, f"{folder}/test", *asked, "--json")
    found = json.loads(done.stdout)["probes"]
    assert len(found["frequent"]) == 3
    assert [row["name"] for row in found["swap"][1:]] == ["dog -> cat", "runs -> sits"]


def test_without_training_captions_a_table_says_so(home, folder, monkeypatch):
    done = _probe(home, monkeypatch, f"{folder}/train", "--probes", "rare,single,human")
    assert done.exit_code == 0
    assert "no training captions" in done.stdout
    assert re.search(r"RvR +[0-9.]+", done.stdout)
    assert "RvR: people's captions against other people's; " in done.stdout


def test_the_teams_own_learned_metric_is_probed(folder, monkeypatch, tmp_path):
    nneval.write_nneval(tmp_path / "own.safetensors", learned_models.by_chance(PEOPLE))
    assets.add_asset("learned", tmp_path / "own.safetensors", AssetFolders(tmp_path))
    asked = (f"{folder}/test", "--probes", "human,single", "--metrics", "nneval", "--json")
    done = _run(tmp_path, monkeypatch, *asked, "--tokenizer", "none")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    digest = hashlib.sha256((tmp_path / "own.safetensors").read_bytes()).hexdigest()
    (people,) = found["probes"]["human"]
    assert f"|model:{digest[:12]}|" in people["signatures"]["nneval"]
    assert 0 < found["health"]["nneval"]["constant"] < 1
    assert found["health"]["nneval"]["human_of_range"] == people["scores"]["nneval"]


def test_models_that_their_names_tell_are_probed_side_by_side(folder, monkeypatch, tmp_path):
    """Each by its own model, which no other metric's takes the place of."""
    nneval.write_nneval(tmp_path / "one", learned_models.by_chance(PEOPLE))
    model.write_accord(tmp_path / "other", learned_models.of_accord())
    names = []
    for name, file, asset in (("nneval", "one", "learned"), ("accord", "other", "accord")):
        added = assets.add_asset("learned", tmp_path / file, AssetFolders(tmp_path))[asset]
        names.append(f"{name}@{added.sha256[:12]}")
    asked = (f"{folder}/test", "--probes", "human", "--metrics", ",".join(names), "--json")
    done = _run(tmp_path, monkeypatch, *asked, "--tokenizer", "none")
    assert done.exit_code == 0, done.output
    (people,) = json.loads(done.stdout)["probes"]["human"]
    for name in names:
        kind, digits = name.split("@")
        assert people["signatures"][name].startswith(f"{kind}|")
        assert f"|model:{digits}|" in people["signatures"][name]
    assert people["scores"][names[0]] != people["scores"][names[1]]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--probes", "humans"), 2, "expected 'human', 'frequent'"),
        (("--swap", "woman"), 2, "expected woman=man"),
        (("--tokenizer", "moses"), 2, "'character' or 'regex'"),
        (("--probes", "human", "--metrics", "spice"), 3, "CoreNLP 3.6.0"),
        (
            ("--probes", "human", "--metrics", "nneval"),
            3,
            "trained with the tokenizer 'ptb'",
        ),
        (("--probes", "human", "--metrics", "words_used"), 2, "cannot be probed"),
        (
            ("--probes", "human", "--metrics", "nneval@0123456789ab"),
            2,
            "there is no model of nneval@0123456789ab here; of learned metrics there are: none",
        ),
        (("--probes", "human", "--captions", "nowhere.json"), 2, "cannot be read"),
    ],
)
def test_an_error_says_what_was_expected(home, folder, monkeypatch, arguments, code, said):
    usual = () if "--tokenizer" in arguments else ("--tokenizer", "none")
    metrics = () if "--metrics" in arguments else ("--metrics", "bleu_4")
    done = _run(home, monkeypatch, f"{folder}/test", *usual, *metrics, *arguments)
    assert done.exit_code == code
    assert said in " ".join(done.stderr.replace("│", " ").split())
