"""`prescore lab study` on small random captioners; what a study says is tested with the engine."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from builders import ENCODER, model, tensors
from service.contract.formats import bundles
from service.contract.formats.bundles import Item
from workers.cli.lab import lab
from workers.inference import checkpoints, features

IMAGES = 12
BEST = "mean_max_normcount_prefix0"
QUICK = ("--metrics", "bleu", "--tokenizer", "none", "--beam", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A bundle and three checkpoints."""
    folder = tmp_path_factory.mktemp("tiny")
    rng = np.random.default_rng(0)
    names = [f"{at}.jpg" for at in range(IMAGES)]
    people = [tuple(" ".join(rng.choice(WORDS, 5)) for _ in range(3)) for _ in names]
    items = [Item(name, "test", own) for name, own in zip(names, people, strict=True)]
    bundles.write_folder(folder / "data", items)
    rows = rng.normal(size=(IMAGES, 5)).astype(np.float32)
    features.write(folder / "data" / bundles.FEATURES, names, rows, ENCODER)
    for seed in range(3):
        written = model("merge", "gru", tensors("merge", "gru", seed=seed))
        checkpoints.write(folder / f"{seed}.safetensors", written)
    return folder


WORDS = [f"w{number}" for number in range(2, 12)]


def _study(folder, monkeypatch, *arguments):
    monkeypatch.setenv("PRESCORE_HOME", str(folder / "home"))
    monkeypatch.setenv("PRESCORE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("PRESCORE_ASSETS", "")
    given = ["study", *map(str, arguments)]
    return CliRunner().invoke(lab, given, catch_exceptions=False)


def _tried(folder, *numbers):
    given = [folder / f"{number}.safetensors" for number in numbers]
    return (*given, "--dataset", folder / "data", *QUICK)


@pytest.mark.long
def test_checkpoints_are_tried_and_their_rows_kept_for_the_next_study(
    folder, monkeypatch, tmp_path
):
    rows = tmp_path / "rows.tsv"
    done = _study(folder, monkeypatch, *_tried(folder, 0, 1, 2), "--rows", rows, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["rows"], found["models"], found["idf"]) == (45, 3, "dataset")
    assert set(found["metrics"]) == {"cider_d", "bleu_1", "bleu_2", "bleu_3", "bleu_4"}
    with rows.open(newline="") as file:
        table = list(csv.DictReader(file, delimiter="\t"))
    assert {row["model"] for row in table} == {str(folder / f"{n}.safetensors") for n in range(3)}
    assert {row["dataset"] for row in table} == {f"{folder / 'data'}/test"}

    two = tmp_path / "two.tsv"
    _study(folder, monkeypatch, *_tried(folder, 0, 1), "--rows", two)
    again = _study(folder, monkeypatch, two, *_tried(folder, 2), "--json")
    assert json.loads(again.stdout) == found
    assert json.loads(_study(folder, monkeypatch, rows, "--json").stdout) == found


@pytest.mark.long
def test_checkpoints_are_tried_as_the_options_say(folder, monkeypatch, tmp_path):
    """Another precision moves probabilities, another search the captions; equal ones nothing."""

    def tried(*options):
        rows = tmp_path / "rows.tsv"
        done = _study(folder, monkeypatch, *_tried(folder, 0), *options, "--rows", rows)
        assert done.exit_code == 0, done.output
        with rows.open(newline="") as file:
            found = list(csv.DictReader(file, delimiter="\t"))
        return [[row[name] for row in found] for name in ("sum_sum_prob_none", "bleu_1")]

    usual = tried()
    assert tried("--precision", "fp32", "--length-power", 0) == usual
    assert tried("--precision", "bf16")[0] != usual[0]
    search = ("--beam", 3)
    plain, longer = tried(*search), tried(*search, "--length-power", 5)
    assert longer[0] == plain[0]
    assert longer[1] != plain[1]


def test_a_study_is_told_as_a_table_a_spreadsheet_and_json(folder, monkeypatch, tmp_path):
    rows = tmp_path / "rows.csv"
    numbers = [(0, 0.1, 0.2, 9), (1, 0.2, 0.5, 7), (2, 0.3, 0.4, 8)]
    lines = [f"d,{n},1,0,{y},{x},{z}" for n, y, x, z in numbers]
    header = f"dataset,model,num_strata,stratum,cider_d,{BEST},sum_sum_count_none"
    rows.write_text("\n".join([header, *lines]))
    outputs = ("--csv", tmp_path / "out.csv", "--json-out", tmp_path / "out.json")
    done = _study(folder, monkeypatch, rows, "--top", "1", *outputs)
    assert done.exit_code == 0
    assert "3 rows of 3 models; where CIDEr counts documents is not said" in done.stdout
    assert "2 of 2 pre-gen metrics remain: 0 are infinite (or wanting) in a row" in done.stdout
    place, name, r2, *own = done.stdout.splitlines()[-1].split()
    r = np.corrcoef([0.1, 0.2, 0.3], [0.2, 0.5, 0.4])[0, 1]
    assert (place, name, r2) == ("1", BEST, f"{r * r:.4f}")
    assert own == [f"{r * r:.4f}", "rank", "+0.50"]
    with (tmp_path / "out.csv").open(newline="") as file:
        table = list(csv.DictReader(file))
    assert [(row["place"], row["pregen"], row["dataset"]) for row in table] == [
        ("1", BEST, ""),
        ("1", BEST, "d"),
        ("2", "sum_sum_count_none", ""),
        ("2", "sum_sum_count_none", "d"),
    ]
    assert float(table[1]["r"]) == pytest.approx(r)
    assert table[1]["models"] == "3"
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["metrics"]["cider_d"]["correlations"][1]["r"] == pytest.approx(-0.5)


@pytest.mark.long
def test_strata_may_count_their_own_documents(folder, monkeypatch):
    done = _study(folder, monkeypatch, *_tried(folder, 0, 1), "--idf", "stratum", "--json")
    found = json.loads(done.stdout)
    assert (done.exit_code, found["idf"]) == (0, "stratum")


def test_what_is_missing_is_told_and_the_rest_studied(folder, monkeypatch, tmp_path):
    other = model("merge", "gru", tensors("merge", "gru", features=7))
    checkpoints.write(tmp_path / "other.safetensors", other)
    given = (tmp_path / "other.safetensors", *_tried(folder, 0), "--metrics", "bleu_4,spice")
    done = _study(folder, monkeypatch, *given, "--json")
    assert done.exit_code == 3
    assert "spice: " in done.stderr
    assert "CoreNLP" in done.stderr
    assert f"{tmp_path / 'other.safetensors'}: " in done.stderr
    assert json.loads(done.stdout)["models"] == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "Missing argument"),
        (["0.safetensors"], 2, "checkpoints need a --dataset to be scored on"),
        (["none.safetensors", "--dataset", "data"], 2, "expected a checkpoint, found no file at"),
        (["none.tsv"], 2, "none.tsv cannot be read"),
        (["0.safetensors", "--dataset", "data", "--metrics", "words_used"], 2, "found words_used"),
        (["0.safetensors", "--dataset", "data", "--metrics", "blue"], 2, "no metric is called"),
        (["0.safetensors", "--dataset", "nowhere"], 2, "no bundle at nowhere"),
        (["none.tsv", "--csv", "nowhere/x.csv"], 2, "expected a folder for x.csv"),
    ],
)
def test_an_error_says_what_was_expected(folder, monkeypatch, arguments, code, said):
    monkeypatch.chdir(folder)
    done = _study(folder, monkeypatch, *arguments)
    assert done.exit_code == code, done.output
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_when_no_checkpoint_can_be_tried_there_is_nothing_to_study(folder, monkeypatch, tmp_path):
    (tmp_path / "bad.safetensors").write_bytes(b"not a checkpoint")
    given = (tmp_path / "bad.safetensors", "--dataset", folder / "data", *QUICK)
    done = _study(folder, monkeypatch, *given)
    assert done.exit_code == 2
    assert "bad.safetensors: " in done.stderr
    assert "found nothing to study" in done.stderr
