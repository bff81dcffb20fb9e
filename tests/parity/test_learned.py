"""The learned metric on real captions and people's ratings: what `LEARNED.md` and the shipped
model's card say, computed again. PRESCORE_LEARNED_CACHE names a folder that keeps features.
"""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from parity import learned, learned_sets
from workers.metrics import postgen, references
from workers.metrics.learned import model
from workers.metrics.learned.fitting import Watched
from workers.metrics.tokens import tokenize

SAID = Path(__file__).with_name("LEARNED.md").read_text("utf-8")
CARD = (Path(model.__file__).parent / "CARD.md").read_text("utf-8")
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


@pytest.mark.slow
def test_the_card_says_how_the_shipped_model_agrees_with_people(data, jvm):
    judged = learned_sets.expert(data)
    sets = list(dict.fromkeys(judged.reference_sets))
    place_of = {each: place for place, each in enumerate(sets)}
    rows = np.array([place_of[each] for each in judged.reference_sets])
    refs = references.prepare(sets, "ptb", jvm)
    tokens = tokenize(judged.captions, "ptb", jvm)
    shipped = model.shipped()
    found = postgen.score_tokens("nneval", tokens, refs, rows, jvm, model=shipped)
    scores = found.captions["nneval"]
    places = np.repeat(np.arange(len(rows)), judged.ratings.shape[1])
    tau = Watched(np.zeros((0, 0)), places, judged.ratings.ravel()).agreement(scores)
    assert f"{tau:.3f}" in CARD
