from dataclasses import dataclass

import numpy as np
import pytest

from builders import captions_with_references, sentence
from workers.learned.builder import Captioner
from workers.learned.features import Scaling
from workers.learned.model import Model
from workers.learned.network import Network
from workers.learned.ratings import Rated
from workers.learned.training import Material
from workers.metrics import frequencies, references
from workers.metrics.jvm import Jvm

WORDS = ["a", "the", "man", "dog", "cat", "runs", "sits", "on", "grass", "big"]
FEATURES = ("bleu_1", "bleu_4", "cider_d")  # nothing starts Java for these, with tokens as given


@dataclass(frozen=True)
class World:
    """People say the same of an image, more or less; machines repeat one sentence of it."""

    material: Material
    rated: Rated


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
        Captioner(f"m{place}", {image: sentence(rng, WORDS, 8) for image in people})
        for place in range(4)
    ]
    rows = []
    for image, said in _people(rng, [f"{number}_x.jpg" for number in range(100, 140)]).items():
        good, poor = (4.0, 3.0), (1.0, 2.0)
        for caption, ratings in ((said[0], good), (said[1], good)):
            rows.append((image, caption, said[2:], ratings))
        rows += ((image, sentence(rng, WORDS, 8), said[2:], poor) for _ in range(2))
    return World(Material(people, captioners), Rated(*map(list, zip(*rows, strict=True))))


@pytest.fixture(scope="session")
def unused_jvm():
    with Jvm() as jvm:
        yield jvm
        assert jvm.pid is None


@pytest.fixture(scope="session")
def refs(unused_jvm):
    _, people = captions_with_references(WORDS, 50, 1)
    return references.prepare(people, "none", unused_jvm)


@pytest.fixture(scope="session")
def model(refs):
    """Weights of chance."""
    rng = np.random.default_rng(0)
    sizes = (len(FEATURES), 4, 2)
    return Model(
        features=FEATURES,
        recipes=(
            "bleu_1|tok:none|reflen:closest|v:1",
            "bleu_4|tok:none|reflen:closest|v:1",
            f"cider_d|tok:none|df:given({frequencies.collect(refs).digest[:12]}, n=50)|v:2",
        ),
        tokenizer="none",
        scaling=Scaling(np.zeros(3), np.array([1.0, 1.0, 10.0])),
        classifier=Network(
            [(rng.normal(size=sizes[n : n + 2]), rng.normal(size=sizes[n + 1])) for n in (0, 1)]
        ),
        frequencies=frequencies.collect(refs),
        about={"seed": 0},
    )
