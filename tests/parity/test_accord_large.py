"""The metric `accord_large` on data that it was not learned from, and its weights learned again.
What is printed stands in ACCORD_LARGE.md.
"""

from pathlib import Path

import numpy as np
import pytest

from parity import accord, accord_large, learned_sets, systems, tables
from workers.bench.judging import distractors
from workers.metrics.accord import large_model
from workers.metrics.vectors import text_encoder

PAGE = Path(__file__).parent / "ACCORD_LARGE.md"
EACH = 1200  # contrasts of each kind
IMAGES = 200  # of a captioner
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def model(minilm):
    return text_encoder.read_encoder(minilm)


@pytest.fixture(scope="module")
def seen(data, model, jvm):
    """The contrasts that were learned from, with their features."""
    return accord_large.learning(data, model, jvm)


@pytest.fixture(scope="module")
def unseen(data, model, jvm):
    """Contrasts of images that were not learned from, with their right and wrong captions; no photo
    of Flickr8k's is among them.
    """
    found = {}
    for name, texts in learned_sets.unseen(data).items():
        chosen, said = accord.held_out(texts, jvm, EACH), accord.tokens_of(texts, jvm)
        found[name] = (chosen, accord_large.measured(chosen, said, model, jvm))
    return found


def test_the_shipped_weights_are_learned_again(seen, model):
    """By a numeric library of another make the last digits may differ."""
    again, shipped = accord_large.learned(seen, model), large_model.load_shipped_large_model()
    assert (again.encoder, again.features) == (shipped.encoder, tuple(shipped.features))
    assert again.about == shipped.about
    np.testing.assert_allclose(again.weights, shipped.weights, rtol=1e-2, atol=1e-2)
    np.testing.assert_allclose(again.near, shipped.near, rtol=1e-3)
    np.testing.assert_allclose(again.enough, shipped.enough, rtol=1e-3)
    assert again.middle == pytest.approx(shipped.middle, rel=1e-2)


@pytest.mark.parametrize(("name", "judged"), [("Expert", "expert"), ("CrowdFlower", "crowd")])
def test_it_agrees_with_people_more_than_words_and_as_much_as_bertscore(
    data, model, jvm, capsys, name, judged
):
    found = accord_large.agreement(getattr(learned_sets, judged)(data), model, jvm)
    refscore = found.pop("refscore")
    interval = f"{refscore.interval[0]:.3f} … {refscore.interval[1]:.3f}"
    tables.tell([(name, "refscore", f"{refscore.tau:.4f}", interval)], capsys, PAGE)
    tables.tell_agreement(name, found, "accord_large", capsys, PAGE)
    assert all(found[metric].ahead[0] > 0 for metric in ("accord", *accord.LEXICAL))
    assert found["bertscore"].ahead[1] > 0  # above it, or equal within the interval
    if name == "Expert":
        assert found["bertscore"].ahead[0] > 0


@pytest.mark.parametrize("name", ["COCO", "Flickr30k"])
def test_it_solves_more_contrasts_than_what_it_is_made_of(unseen, capsys, name):
    chosen, reads = unseen[name]
    solved = accord_large.right(chosen, *reads)
    shares = {
        metric: [float(kinds[task].mean()) for task in distractors.CATEGORIES]
        for metric, kinds in solved.items()
    }
    rows = tables.rows_of_tasks(name, shares)
    whole = [[float(part.mean()) for part in kinds.values()] for kinds in solved.values()]
    of_all = zip(solved, whole, strict=True)
    rows += [(name, metric, f"{100 * np.mean(found):.1f}") for metric, found in of_all]
    tables.tell(rows, capsys, PAGE)
    own = shares.pop("accord_large")
    assert all(np.mean(own) >= np.mean(found) for found in shares.values())
    assert all(min(own) >= min(found) for found in shares.values())


def test_every_kind_of_contrasts_is_solved_where_it_was_left_out(seen, unseen, jvm, capsys):
    """More often than by CIDEr-D, as of `accord`."""
    tables.tell_left_out(accord_large.left_out(seen, unseen, jvm), capsys, PAGE)


@pytest.mark.parametrize("dataset", systems.DATASETS)
def test_people_are_above_all_twelve_captioners(data, model, jvm, capsys, dataset):
    found = accord_large.people_and_systems(data, dataset, IMAGES, model, jvm)
    tables.tell_people(dataset, found, "accord_large", capsys, PAGE)
