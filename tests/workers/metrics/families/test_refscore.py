"""Oracles: the definition on padded batches (tests/oracles), and sentence-transformers' figures."""

import numpy as np
import pytest

from helpers import encoders
from helpers.builders import captions_with_references
from helpers.encoders import PEOPLE, SAID
from oracles import sentences as oracle
from workers.metrics import postgen, references
from workers.metrics.family import ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.vectors import text_encoder

JVM = Jvm()  # never asked


def _task(model, captions, people):
    tools = {"encoder": model, "people": people}
    return ScoringInput(captions, np.arange(len(captions)), None, JVM, tools=tools)


def _scores(*task):
    return postgen.score_family("refscore", _task(*task)).captions["refscore"]


@pytest.mark.long
@pytest.mark.parametrize("layer", [1, encoders.LAYERS])
def test_scores_follow_from_the_definition(layer, tmp_path):
    """By a BERT; what every other kind of encoder gives: test_bertscore.py."""
    folder = encoders.make(tmp_path, uneven=True)
    captions, people = captions_with_references(encoders.WORDS, 12, layer)
    captions[3:6] = ["A  DOG runs!\n", "", " unheard "]
    people[7], people[8] = ["", "the dog"], [" "]
    found = _scores(text_encoder.read_encoder(folder, layer), captions, people)
    reference = oracle.Model(folder, layer)
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


def test_a_signature_says_model_layer_and_pooling(model):
    said = f"model:{model.digest[:12]}|layer:{encoders.LAYERS}|pool:mean|v:1"
    found = postgen.score_family("refscore", _task(model, ["a dog"], [["a dog", "a cat"]]))
    assert found.signatures == {"refscore": f"refscore|refs:2|tok:model|{said}"}
    refs = references.prepare_references([["a dog", "a cat"]], "none", JVM)
    found = postgen.score_tokens("refscore", ["a dog"], refs, np.arange(1), JVM, encoder=model)
    assert found.signatures == {"refscore": f"refscore|refs:2|tok:none|{said}"}
