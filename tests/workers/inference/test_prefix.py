import numpy as np
import pytest

from helpers import interruptions
from helpers.builders import (
    REPRESENTATIVES,
    agreeing_references,
    encoded,
    model,
    random_references,
    tensors,
)
from service.contract.errors import RunCanceled
from service.contract.metrics import catalogue
from workers.inference import prefix, scoring
from workers.metrics import pregen


@pytest.mark.long
@pytest.mark.parametrize(("architecture", "cell"), REPRESENTATIVES)
def test_the_walk_answers_as_columns_do_in_every_caption(architecture, cell):
    rng = np.random.default_rng(4)
    arrays = tensors(architecture, cell, words=30, scale=1.0)
    features = rng.normal(size=(40, 5)).astype(np.float32)
    references = agreeing_references(architecture, cell, arrays, features, rng)
    captioner = model(architecture, cell, arrays)
    found = prefix.walk_prefixes(captioner, features, encoded(references))
    columns = scoring.compute_columns(captioner, features, encoded(references))
    ranks = np.split(columns.rank, columns.caption_offsets[1:-1])
    hits = [[*(each == 0), False] for each in ranks]
    assert found.tolist() == [each.index(False) for each in hits]
    assert found.mean() > 1


def test_where_words_tie_the_walk_follows_every_reference():
    arrays = tensors("merge", "gru", words=10, scale=1.0)
    arrays["output.weight"][:, 4:7] = arrays["output.weight"][:, 4:5]
    arrays["output.bias"][4:7] = 25.0
    references = [[[4, 5, 6], [6, 6], [5, 4, 9], []]]
    found = prefix.walk_prefixes(
        model("merge", "gru", arrays), np.ones((1, 5), "f4"), encoded(references)
    )
    assert found.tolist() == [3, 2, 2, 0]


def test_the_84_scores_equal_those_of_columns_and_need_no_probability():
    rng = np.random.default_rng(6)
    arrays = tensors("par", "gru", words=30, scale=1.0)
    features = rng.normal(size=(30, 5)).astype(np.float32)
    references = encoded(agreeing_references("par", "gru", arrays, features, rng))
    captioner = model("par", "gru", arrays)
    prefixes = prefix.walk_prefixes(captioner, features, references)
    known = pregen.make_columns(prefixes, references.lengths)
    found = pregen.scores(*known, references.image_offsets, pregen.INSTANT)
    columns = scoring.compute_columns(captioner, features, references)
    whole = pregen.scores(
        columns.logp, columns.rank, columns.caption_offsets, columns.image_offsets
    )
    assert len(found) == 84
    assert found == {name: whole[name] for name in found}
    assert {spec.name for spec in catalogue.METRICS.values() if spec.needs == ("prefix",)} == set(
        found
    )


def test_images_drop_out_when_no_reference_goes_on():
    """Random references leave the model's path at once: one step for the images, no more."""
    rng = np.random.default_rng(7)
    arrays = tensors("init", "lstm", words=5000)
    captioner = model("init", "lstm", arrays)
    features = rng.normal(size=(100, 5)).astype(np.float32)
    rows = 0
    real = captioner.step

    def counting(state, words):
        nonlocal rows
        rows += len(words)
        return real(state, words)

    captioner.step = counting
    prefix.walk_prefixes(captioner, features, encoded(random_references(100, 5000, rng)))
    assert 100 <= rows < 110


def test_progress_is_told_and_may_end_it():
    rng = np.random.default_rng(8)
    captioner = model("init", "gru", tensors("init", "gru"))
    features = rng.normal(size=(1100, 5)).astype(np.float32)
    references = encoded(random_references(1100, 50, rng))
    told: list[tuple[int, int]] = []
    prefix.walk_prefixes(captioner, features, references, progress=lambda *at: told.append(at))
    assert told == [(1024, 1100), (1100, 1100)]
    with pytest.raises(RunCanceled):
        prefix.walk_prefixes(captioner, features, references, progress=interruptions.ends)
