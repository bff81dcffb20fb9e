"""Families that read captions by a language model, BERTScore and RefScore: what is the same of
both. Their definitions: test_bertscore.py, test_refscore.py.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from helpers import encoders, interruptions
from helpers.builders import captions_with_references
from service.contract.errors import MetricFailed, MetricUnavailable, RunCanceled
from workers.metrics import postgen
from workers.metrics.families import bertscore
from workers.metrics.family import ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.vectors import sentences, text_encoder

JVM = Jvm()  # never asked
PREPARED = {"bertscore": (bertscore, "embedded"), "refscore": (sentences, "sentences")}
PEOPLE = [["the man runs", "a dog"], ["a dog"], ["", "a big red cat"], ["the man runs"]]

pytestmark = pytest.mark.parametrize("family", PREPARED)


def _task(model, captions, people, rows=None, **tools):
    rows = np.arange(len(captions)) if rows is None else np.asarray(rows)
    return ScoringInput(
        captions, rows, None, JVM, tools={"encoder": model, "people": people, **tools}
    )


def _scores(family, *task, **tools):
    return postgen.score_family(family, _task(*task, **tools)).captions[family]


def _by_image(prepared):
    """The vectors of each image's references."""
    if hasattr(prepared, "embedded"):
        bounds, tokens = prepared.embedded.offsets, prepared.embedded.vectors
        each = [tokens[bounds[at] : bounds[at + 1]] for at in prepared.sentences]
    else:
        each = [prepared.vectors[[at]] for at in prepared.sentences]
    spans = pairwise(prepared.images.tolist())
    return [np.concatenate(each[start:stop]) for start, stop in spans]


def test_a_reference_is_embedded_once_and_parts_are_those_embedded_together(family, model):
    module, _ = PREPARED[family]
    whole = module.prepare(PEOPLE, model)
    assert whole.sentences.tolist() == [0, 1, 1, 2, 3, 0]
    assert whole.images.tolist() == [0, 2, 3, 5, 6]
    joined = module.join([module.prepare(part, model) for part in (PEOPLE[:1], PEOPLE[1:])])
    assert joined.images.tolist() == whole.images.tolist()
    for found, expected in zip(_by_image(joined), _by_image(whole), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)


def test_references_that_are_written_are_read(family, model, tmp_path):
    module, tool = PREPARED[family]
    prepared = module.prepare(PEOPLE, model)
    for name in ("one", "again"):
        module.write(tmp_path / name, prepared)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "again").read_bytes()
    read = module.read(tmp_path / "one")
    assert read.model == f"{model.digest}/{encoders.LAYERS}"
    scores = [
        _scores(family, model, ["a dog", "the cat"] * 2, [], **{tool: each})
        for each in (prepared, read)
    ]
    np.testing.assert_array_equal(*scores)


def test_references_of_another_model_or_layer_and_none_are_refused(family, folder, model, tmp_path):
    module, tool = PREPARED[family]
    prepared = {tool: module.prepare([["a dog"]], model)}
    for other in (
        text_encoder.read_encoder(folder, 1),
        text_encoder.read_encoder(encoders.make(tmp_path, seed=1)),
    ):
        with pytest.raises(MetricFailed, match="same layer of the same model"):
            _scores(family, other, ["a dog"], [], **prepared)
    with pytest.raises(MetricFailed, match="image 1: expected at least one reference"):
        module.prepare([["a dog"], []], model)
    with pytest.raises(MetricUnavailable, match="needs a model"):
        _scores(family, None, ["a dog"], [["a dog"]])


def test_a_part_is_scored_as_in_the_whole_and_parts_add_up(family, model):
    """To float32's last digits: which sentences share a batch decides them."""
    captions, people = captions_with_references(encoders.WORDS, 60, 5)
    whole = postgen.score_family(family, _task(model, captions, people))
    cut = [5, 3, 5, 59]
    part = postgen.score_family(family, _task(model, [captions[row] for row in cut], people, cut))
    for name, values in part.statistics.items():
        np.testing.assert_allclose(values, whole.statistics[name][cut], rtol=0, atol=2e-6)
    taken = {name: values[cut] for name, values in whole.statistics.items()}
    expected = postgen.compute_corpus_scores(family, taken)
    assert part.corpus == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(
    "odd", ["\0", "\ud800", "\u2028", "🐕", "dog " * 2500, "x" * 10_000, "[CLS] [SEP] [PAD] [MASK]"]
)
def test_hostile_captions_move_no_other_captions_score(family, model, odd):
    expected = _scores(family, model, ["a man", "the dog sits"], [["a man runs"], ["the dog"]])
    task = _task(model, [odd, "the dog sits"], [["a man", odd], ["the dog"]])
    found = postgen.score_family(family, task)
    assert found.captions[family][1] == pytest.approx(expected[1], abs=2e-6)
    for values in found.statistics.values():
        assert np.isfinite(values).all()


def test_progress_is_told_and_may_end_it(family, model):
    captions, people = captions_with_references(encoders.WORDS, 9, 3)
    told = []
    task = _task(model, captions, people)
    postgen.score_family(family, replace(task, progress=lambda *at: told.append(at)))
    assert told[-1] == (len(set(captions)), len(set(captions)))
    assert len(told) > 1
    with pytest.raises(RunCanceled):
        postgen.score_family(family, replace(task, progress=interruptions.ends))
    module, tool = PREPARED[family]
    known = _task(model, ["dog"], [], **{tool: module.prepare(people[:1], model)})
    asked = iter([False, True])  # a batch of sentences of one length, then the matching
    known = replace(known, progress=interruptions.ends_when(lambda _: next(asked)))
    with pytest.raises(RunCanceled, match="of 1"):
        postgen.score_family(family, known)
    assert next(asked, None) is None
