"""Oracles: the definition on padded batches (tests/oracles), and sentence-transformers' figures."""

from dataclasses import replace

import numpy as np
import pytest

import encoders
import ending
from builders import captions_with_references
from encoders import PEOPLE, SAID
from oracles import sentences as oracle
from service.contract.errors import MetricFailed, MetricUnavailable, RunCanceled
from workers.metrics import postgen, references
from workers.metrics.family import ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.vectors import sentences, text_encoder

JVM = Jvm()  # never asked


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return encoders.make(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def model(folder):
    return text_encoder.read_encoder(folder)


def _task(model, captions, people, rows=None, **tools):
    rows = np.arange(len(captions)) if rows is None else np.asarray(rows)
    return ScoringInput(
        captions, rows, None, JVM, tools={"encoder": model, "people": people, **tools}
    )


def _scores(*task, **tools):
    return postgen.score_family("refscore", _task(*task, **tools)).captions["refscore"]


@pytest.mark.long
@pytest.mark.parametrize("kind", text_encoder.KINDS)
@pytest.mark.parametrize("layer", [1, encoders.LAYERS])
def test_scores_follow_from_the_definition(kind, layer, tmp_path):
    folder = encoders.make(tmp_path, kind, uneven=True)
    captions, people = captions_with_references(encoders.WORDS, 12, layer)
    captions[3:6] = ["A  DOG runs!\n", "", " unheard "]
    people[7], people[8] = ["", "the dog"], [" "]
    found = _scores(text_encoder.read_encoder(folder, layer), captions, people)
    reference = oracle.Model(folder, layer, " " if kind == "roberta" else "")
    pairs = zip(captions, people, strict=True)
    expected = [oracle.score(reference, caption, image) for caption, image in pairs]
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)
    assert found[4] == found[8] == 0
    assert len(set(found)) > len(found) / 2


COSINES = [
    [0.795821, 0.834093, 0.539689],
    [0.544323, 0.70219],
    [0.577491, 1.0],
    [0.121795, -0.036681],
]


@pytest.mark.long
def test_cosines_of_a_real_model_are_the_published_packages(minilm):
    """`SentenceTransformer(…).encode` of sentence-transformers 6.2.0 on transformers 5.23.0."""
    real = text_encoder.read_encoder(minilm)
    pairs = [(said, text) for said, texts in zip(SAID, PEOPLE, strict=True) for text in texts]
    each = _scores(real, [said for said, _ in pairs], [[text] for _, text in pairs])
    np.testing.assert_allclose(each, np.concatenate(COSINES), rtol=0, atol=1.5e-6)
    best = [max(cosines) for cosines in COSINES]
    np.testing.assert_allclose(_scores(real, SAID, PEOPLE), best, rtol=0, atol=1.5e-6)


def test_a_part_is_scored_as_in_the_whole_and_parts_add_up(model):
    """To float32's last digits: which sentences share a batch decides them."""
    captions, people = captions_with_references(encoders.WORDS, 40, 5)
    whole = postgen.score_family("refscore", _task(model, captions, people))
    chosen = [5, 3, 5, 39]
    part = postgen.score_family(
        "refscore", _task(model, [captions[row] for row in chosen], people, chosen)
    )
    expected = whole.captions["refscore"][chosen]
    np.testing.assert_allclose(part.captions["refscore"], expected, rtol=0, atol=2e-6)
    assert part.corpus["refscore"] == pytest.approx(expected.mean(), abs=2e-6)


@pytest.mark.parametrize("odd", ["\0", "\ud800", "🐕", "dog " * 2500, "[CLS] [SEP] [PAD]"])
def test_hostile_captions_move_no_other_captions_score(model, odd):
    expected = _scores(model, ["a man", "the dog sits"], [["a man runs"], ["the dog"]])[1]
    found = _scores(model, [odd, "the dog sits"], [["a man", odd], ["the dog"]])
    assert found[1] == pytest.approx(expected, abs=2e-6)
    assert found[0] in (0, pytest.approx(1, abs=2e-6))


def test_references_of_another_model_or_layer_are_refused(folder, model, tmp_path):
    prepared = sentences.prepare([["a dog"]], model)
    for other in (
        text_encoder.read_encoder(folder, 1),
        text_encoder.read_encoder(encoders.make(tmp_path, seed=1)),
    ):
        with pytest.raises(MetricFailed, match="same layer of the same model"):
            _scores(other, ["a dog"], [], sentences=prepared)


def test_without_a_model_it_is_unavailable():
    with pytest.raises(MetricUnavailable, match="RefScore needs a model"):
        _scores(None, ["a dog"], [["a dog"]])


def test_a_signature_says_model_layer_and_pooling(model):
    said = f"model:{model.digest[:12]}|layer:{encoders.LAYERS}|pool:mean|v:1"
    found = postgen.score_family("refscore", _task(model, ["a dog"], [["a dog", "a cat"]]))
    assert found.signatures == {"refscore": f"refscore|refs:2|tok:model|{said}"}
    refs = references.prepare_references([["a dog", "a cat"]], "none", JVM)
    found = postgen.score_tokens("refscore", ["a dog"], refs, np.arange(1), JVM, encoder=model)
    assert found.signatures == {"refscore": f"refscore|refs:2|tok:none|{said}"}


def test_progress_is_told_and_may_end_it(model):
    captions, people = captions_with_references(encoders.WORDS, 9, 3)
    told = []
    task = _task(model, captions, people)
    postgen.score_family("refscore", replace(task, progress=lambda *at: told.append(at)))
    assert told[-1] == (len(set(captions)), len(set(captions)))
    with pytest.raises(RunCanceled):
        postgen.score_family("refscore", replace(task, progress=ending.ends))
