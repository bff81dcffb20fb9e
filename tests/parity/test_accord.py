"""The metric `accord` on data that it was not learned from, and learned again. What is printed
stands in ACCORD.md.
"""

from pathlib import Path

import numpy as np
import pytest

from parity import accord, learned_sets, systems, tables
from workers.bench.judging import distractors
from workers.metrics.accord import model

PAGE = Path(__file__).parent / "ACCORD.md"
EACH = 1200  # contrasts of each kind
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def unseen(data, jvm):
    """Contrasts of images that were not learned from; no photo of Flickr8k's is among them."""
    return {
        name: accord.held_out(texts, jvm, EACH) for name, texts in learned_sets.unseen(data).items()
    }


def test_the_shipped_model_is_learned_again(data, jvm, tmp_path):
    """By a numeric library of another make the last digits may differ."""
    model.write_accord(tmp_path / "again.safetensors", accord.learned(data, jvm))
    again, shipped = model.read_accord(tmp_path / "again.safetensors"), model.load_shipped_accord()
    assert list(again.language.words) == list(shipped.language.words)
    assert again.language.frequencies.digest == shipped.language.frequencies.digest
    assert again.about == shipped.about
    np.testing.assert_allclose(again.weights, shipped.weights, rtol=1e-3, atol=1e-3)
    assert again.middle == pytest.approx(shipped.middle, rel=1e-3)


@pytest.mark.parametrize(("name", "judged"), [("Expert", "expert"), ("CrowdFlower", "crowd")])
def test_it_agrees_with_people_more_than_every_lexical_metric_does(data, jvm, capsys, name, judged):
    found = accord.agreement(getattr(learned_sets, judged)(data), jvm)
    tables.tell_agreement(name, found, "accord", capsys, PAGE)
    assert all(row.ahead[0] > 0 for metric, row in found.items() if metric != "accord")


@pytest.mark.parametrize("name", ["COCO", "Flickr30k"])
def test_it_solves_more_distractor_tasks_than_every_lexical_metric(unseen, jvm, capsys, name):
    solved = accord.right(unseen[name], jvm, ["accord", *accord.LEXICAL])
    shares = {
        metric: [float(kinds[task].mean()) for task in distractors.CATEGORIES]
        for metric, kinds in solved.items()
    }
    tables.tell(tables.rows_of_tasks(name, shares), capsys, PAGE)
    own = shares.pop("accord")
    assert all(np.mean(own) > np.mean(found) for found in shares.values())
    assert all(min(own) > min(found) for found in shares.values())


@pytest.mark.parametrize("dataset", systems.DATASETS)
def test_people_are_above_all_twelve_captioners(data, jvm, capsys, dataset):
    found = accord.people_and_systems(data, dataset, jvm)
    tables.tell_people(dataset, found, "accord", capsys, PAGE)


def test_every_kind_of_contrasts_is_solved_where_it_was_left_out(data, unseen, jvm, capsys):
    """More often than by CIDEr-D."""
    seen = accord.learned_from(data, jvm)
    measured = {name: (each, accord.measured(each, jvm)) for name, each in unseen.items()}
    found = accord.left_out(seen, accord.measured(seen, jvm), measured, jvm)
    tables.tell_left_out(found, capsys, PAGE)
