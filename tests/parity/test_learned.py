"""The learned metric on real captions and people's ratings: what `LEARNED.md` and the shipped
model's card say, computed again. PRESCORE_LEARNED_CACHE names a folder that keeps features.
"""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers import command_app
from parity import learned, learned_card, learned_sets
from workers.metrics.learned import nneval

SAID = Path(__file__).with_name("LEARNED.md").read_text("utf-8")
CARD = (Path(nneval.__file__).parent / "CARD.md").read_text("utf-8")
CLOSE = 0.01  # another machine's matrix products end another epoch a little earlier or later


@pytest.fixture(scope="module")
def found(data, jvm, tmp_path_factory):
    keep = os.environ.get("PRESCORE_LEARNED_CACHE") or tmp_path_factory.mktemp("features")
    return learned.experiment(learned.prepared(data, Path(keep), jvm))


def _said():
    """(judged, direction, metric) -> tau c, as the document has them."""
    values = {}
    for section in SAID.split("### ")[1:]:
        label, direction = re.match(r"(\w+), direction (\d)", section).groups()
        for metric, value in re.findall(r"^\| ([^|]+) \| (-?[0-9.]+) \|", section, re.MULTILINE):
            values[label, int(direction), metric] = float(value)
    return values


@pytest.mark.slow
def test_the_documents_tables_are_what_is_computed(found):
    assert {(line.judged, line.direction, line.metric): line.value for line in found} == (
        pytest.approx(_said(), abs=CLOSE)
    )


@pytest.mark.slow
def test_the_learned_metric_beats_no_best_feature_outside_the_interval(found):
    """What the document says in words."""
    assert not [line for line in found if line.difference[0] > 0]


@pytest.fixture(scope="module")
def bench(data, jvm, tmp_path_factory):
    keep = os.environ.get("PRESCORE_LEARNED_CACHE") or tmp_path_factory.mktemp(
        "features of the card"
    )
    return learned_card.Bench(nneval.load_shipped_nneval(), data, Path(keep), jvm)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["people", "tasks", "agreement"])
def test_the_card_says_what_is_computed_of_the_shipped_model(bench, part):
    for line in getattr(learned_card, part)(bench):
        assert line in CARD


@pytest.mark.slow
def test_people_are_above_all_captioners_and_an_exact_match_is_not_punished(bench):
    """What the card says in words."""
    for line in learned_card.people(bench)[2:]:
        _, people, best, below, exact, higher = (cell.strip() for cell in line.split("|")[1:-1])
        assert below == "12 of 12"
        assert float(best) + 0.05 < float(people) < float(exact)
        assert float(higher.split("%")[0]) > 99


@pytest.mark.slow
def test_the_documented_command_makes_the_shipped_model_again(data, tmp_path, monkeypatch):
    """Its features' ranges and frequencies to the bit; its scores nearly, on another machine."""
    arguments = learned_sets.write_training(data, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PRESCORE_HOME", str(tmp_path / "home"))
    command = ["learned", "train", *arguments, "--out", "again.safetensors"]
    done = CliRunner().invoke(command_app.prescore(), command)
    assert done.exit_code == 0, done.output
    again, shipped = (
        nneval.read_nneval(tmp_path / "again.safetensors"),
        nneval.load_shipped_nneval(),
    )
    assert again.frequencies.digest == shipped.frequencies.digest
    np.testing.assert_array_equal(again.scaling.low, shipped.scaling.low)
    np.testing.assert_array_equal(again.scaling.high, shipped.scaling.high)
    values = np.random.default_rng(0).uniform(-1, 1, (1000, len(shipped.features)))
    np.testing.assert_allclose(again.classifier(values), shipped.classifier(values), atol=CLOSE)
