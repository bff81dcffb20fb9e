"""The learned metric `nneval` on real captions and people's ratings: what LEARNED.md and the
shipped model's card say, computed again.
"""

import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers import command_app
from parity import accord, learned, learned_sets, systems, tables
from parity.resampling import Resampled, interval
from workers.bench.learned import training_sets
from workers.metrics import postgen, references
from workers.metrics.learned import nneval
from workers.metrics.tokens import tokenize

PAGE = Path(__file__).with_name("LEARNED.md")
CARD = Path(nneval.__file__).parent / "CARD.md"
IMAGES = 1000  # of each set of captioners: the first
CLOSE = 0.01  # another machine's matrix products end another epoch a little earlier or later
pytestmark = pytest.mark.slow


def _resampled(judged, jvm):
    """Kendall's tau c of the model and of each of its features, on the half of the judged images
    that did not stop its training: of the images as they are, then of each draw.
    """
    scores = learned.shipped_scores(judged.captions, judged.reference_sets, jvm)
    _, test = training_sets.split_images(judged.images, (1, 1), seed=0)
    kept = np.array([image in test for image in judged.images])
    images = [image for image in judged.images if image in test]
    resampled = Resampled(images, judged.ratings[kept], 1000, seed=0)
    return {name: resampled(each[kept]) for name, each in scores.items()}


def test_the_card_says_how_the_shipped_model_agrees_with_people(data, jvm, capsys):
    sets = [_resampled(judged(data), jvm) for judged in (learned_sets.expert, learned_sets.crowd)]
    rows = []
    for name in sets[0]:
        cells = []
        for taus in sets:
            low, high = interval(taus[name])
            cells.append(f"{taus[name][0]:.3f} ({low:.3f} … {high:.3f})")
            low, high = interval(taus["nneval"] - taus[name])
            cells.append("" if name == "nneval" else f"{low:+.3f} … {high:+.3f}")
        rows.append((name, *cells))
    tables.tell(rows, capsys, CARD)


@pytest.mark.parametrize("dataset", systems.DATASETS)
def test_the_card_says_how_far_people_are_above_captioners(data, jvm, capsys, dataset):
    """And that a caption which is itself a reference is not punished."""
    shipped = nneval.load_shipped_nneval()
    found = accord.people_and_systems(data, dataset, jvm, "nneval", IMAGES, model=shipped)
    means = {name: scores.corpus["nneval"] for name, scores in found.items()}
    people = means.pop("people")
    below = sum(mean < people for mean in means.values())
    texts = systems.raw(data, dataset)[:IMAGES]
    refs = references.prepare_references(texts, "ptb", jvm)
    own = tokenize([image[0] for image in texts], "ptb", jvm)
    exact = postgen.score_tokens("nneval", own, refs, np.arange(IMAGES), jvm, model=shipped)
    higher = exact.captions["nneval"] > found["people"].captions["nneval"]
    cells = [f"{people:.3f}", f"{max(means.values()):.3f}", f"{below} of {len(means)}"]
    cells += [f"{exact.corpus['nneval']:.3f}", f"{np.mean(higher):.1%} of images"]
    tables.tell([(dataset, *cells)], capsys, CARD)
    assert below == len(means)


def test_the_card_says_how_many_distractors_are_solved(data, jvm, capsys):
    sets = [
        learned.solved_tasks(list(people.values()), most, jvm)
        for people, most in (
            (systems.coco(data, "test"), 700),
            (systems.flickr30k(data, "test_2016"), 400),
        )
    ]
    metrics = ("nneval", "cider_d", "meteor", "bleu_1")
    shares = {
        task: [*(100 * each[task][name] for each in sets for name in metrics), published]
        for task, published in learned.PUBLISHED.items()
    }
    shares["average"] = np.mean(list(shares.values()), axis=0)
    rows = [(task, *(f"{share:.1f}" for share in each)) for task, each in shares.items()]
    tables.tell(rows, capsys, CARD)


def _numbers(text):
    return [float(number) for number in re.findall(r"[-+]?\d\.\d{3,4}", text)]


def test_the_pages_tables_of_the_experiment_are_what_is_computed(data, jvm, capsys):
    found = learned.experiment(learned.prepared(data, jvm))
    with capsys.disabled():
        print("", *(f"{at}: {' | '.join(cells)}" for at, cells in found.items()), sep="\n")
    said = {}
    for section in PAGE.read_text("utf-8").split("### ")[1:]:
        table, *rows = section.splitlines()
        for metric, cells in re.findall(r"^\| ([^|]+) \| (-?\d.*)", "\n".join(rows), re.MULTILINE):
            said[table, metric] = _numbers(cells)
    assert found.keys() == said.keys()
    for at, cells in found.items():
        assert _numbers(" ".join(cells)) == pytest.approx(said[at], abs=CLOSE), at
        assert not cells[2].startswith("+"), f"{at} is above the best single feature"


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
