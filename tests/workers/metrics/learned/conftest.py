from dataclasses import dataclass

import numpy as np
import pytest

from helpers import learned_models
from helpers.builders import captions_with_references, sentence
from workers.bench.judgements import RatedCaption
from workers.bench.learned.nneval_training import NNEvalMaterial
from workers.bench.learned.training_sets import CaptionerOutputs
from workers.metrics import references
from workers.metrics.java.jvm import Jvm

WORDS = ["a", "the", "man", "dog", "cat", "runs", "sits", "on", "grass", "big"]
_, PEOPLE = captions_with_references(WORDS, 50, 1)


@dataclass(frozen=True)
class World:
    """People say the same of an image, more or less; machines repeat one sentence of it."""

    material: NNEvalMaterial
    rated: list[RatedCaption]


def _people(rng, images):
    said = {}
    for image in images:
        words = rng.choice(WORDS, 5)
        said[image] = tuple(" ".join([*words, *rng.choice(WORDS, 2)]) for _ in range(5))
    return said


@pytest.fixture(scope="session")
def world():
    """60 images of four captioners, and 40 others of which people rated four captions each."""
    rng = np.random.default_rng(0)
    people = _people(rng, [f"{number}.jpg" for number in range(60)])
    captioners = [
        CaptionerOutputs(f"m{place}", {image: sentence(rng, WORDS, 8) for image in people})
        for place in range(4)
    ]
    rows = []
    for image, said in _people(rng, [f"{number}_x.jpg" for number in range(100, 140)]).items():
        good, poor = (4.0, 3.0), (1.0, 2.0)
        for caption, ratings in ((said[0], good), (said[1], good)):
            rows.append(RatedCaption(caption, said[2:], ratings, image))
        rows += (RatedCaption(sentence(rng, WORDS, 8), said[2:], poor, image) for _ in range(2))
    return World(NNEvalMaterial(people, captioners), rows)


@pytest.fixture(scope="session")
def unused_jvm():
    with Jvm() as jvm:
        yield jvm
        assert jvm.pid is None


@pytest.fixture(scope="session")
def refs(unused_jvm):
    return references.prepare_references(PEOPLE, "none", unused_jvm)


@pytest.fixture(scope="session")
def model():
    return learned_models.by_chance(PEOPLE)
