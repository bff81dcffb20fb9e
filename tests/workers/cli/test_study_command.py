"""`prescore lab study` on tables of rows; what a study says is tested with the engine."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from workers.cli.lab import lab

BEST = "mean_max_normcount_prefix0"


def _study(*arguments):
    return CliRunner().invoke(lab, ["study", *map(str, arguments)], catch_exceptions=False)


def test_a_study_is_told_as_a_table_a_spreadsheet_and_json(tmp_path):
    rows = tmp_path / "rows.csv"
    numbers = [(0, 0.1, 0.2, 9), (1, 0.2, 0.5, 7), (2, 0.3, 0.4, 8)]
    lines = [f"d,{n},1,0,{y},{x},{z}" for n, y, x, z in numbers]
    header = f"dataset,model,num_strata,stratum,cider_d,{BEST},sum_sum_count_none"
    rows.write_text("\n".join([header, *lines]))
    outputs = ("--csv", tmp_path / "out.csv", "--json-out", tmp_path / "out.json")
    done = _study(rows, "--top", "1", *outputs)
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


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Missing argument"),
        (["0.safetensors"], "study it by `prescore correlations --compute`"),
        (["none.tsv"], "none.tsv cannot be read"),
    ],
)
def test_an_error_says_what_was_expected(arguments, said):
    done = _study(*arguments)
    assert done.exit_code == 2, done.output
    assert said in " ".join(done.stderr.replace("│", " ").split())
