"""Oracle: SPICE's own Java classes, in a process of their own (tests/oracles/spice_java.py)."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from workers.metrics.java.jvm_child import find_package_file
from workers.metrics.scene_graphs import SceneGraph, Synonyms

pytestmark = pytest.mark.processes

ORACLE = Path(__file__).resolve().parents[2] / "oracles" / "spice_java.py"
NOUNS = [
    *("man", "person", "people", "woman", "lady", "child", "kid", "boy", "dog", "puppy", "animal"),
    *("car", "automobile", "auto", "building", "house", "grass", "field", "bike", "bicycle"),
    *("street", "road", "ball", "frisbee", "women", "horses", "glass", "phone booth", "Cat", "ski"),
]
ATTRIBUTES = [
    "big",
    "large",
    "small",
    "little",
    "red",
    "two",
    "2",
    "young",
    "grey",
    "gray",
    "happy",
]
RELATIONS = [
    *("ride", "in", "in front of", "be on", "on", "near", "by", "run", "jog", "hold", "stand in"),
    *("be near", "have", "bein on", ""),
]


@pytest.fixture(scope="module")
def synonyms():
    return Synonyms(find_package_file("spice/lib/Meteor-1.5.jar"))


def _tuples(rng, count):
    made = [
        lambda: [rng.choice(NOUNS)],
        lambda: [rng.choice(NOUNS), rng.choice(ATTRIBUTES)],
        lambda: [rng.choice(NOUNS), rng.choice(NOUNS), rng.choice(RELATIONS)],
    ]
    return [rng.choice(made)() for _ in range(count)]


@pytest.mark.slow
def test_counts_are_those_of_spices_own_java(synonyms):
    rng = random.Random(0)
    pairs = [(_tuples(rng, rng.randrange(9)), _tuples(rng, rng.randrange(40))) for _ in range(400)]
    answer = subprocess.run(
        [sys.executable, str(ORACLE)], input=json.dumps(pairs), capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    expected = [row[:3] for row in json.loads(answer.stdout)]
    found = []
    for caption, references in pairs:
        ours, theirs = SceneGraph(caption, synonyms), SceneGraph(references, synonyms)
        known = ours.known_to(theirs)
        found.append([known, len(ours) - known, len(theirs) - known])
    assert found == expected


@pytest.mark.parametrize(
    ("caption", "references", "known", "tuples"),
    [
        ([["dog"]], [["dog"]], 1, 1),
        ([["dog"]], [], 0, 1),
        ([], [["dog"]], 0, 0),
        ([["dog"], ["dog"]], [["dog"]], 1, 1),  # a graph has each thing once
        ([["automobile"]], [["car"]], 1, 1),  # synonyms
        ([["women"]], [["woman"]], 1, 1),  # an irregular form
        ([["dog", "big"]], [["dog", "large"]], 2, 2),  # the dog itself counts
        ([["dog", "big"]], [["cat", "large"], ["dog"]], 1, 2),  # another's attribute
        ([["man", "dog", "hold"]], [["dog", "man", "hold"]], 2, 3),  # the other way round
        ([["man", "dog", "be on"]], [["man", "dog", "on"]], 3, 3),
        ([["car"], ["automobile"], ["auto"]], [["car"]], 1, 1),  # joined, not counted thrice
    ],
)
def test_tuples_match_by_words_and_synonyms(synonyms, caption, references, known, tuples):
    ours, theirs = SceneGraph(caption, synonyms), SceneGraph(references, synonyms)
    assert (ours.known_to(theirs), len(ours)) == (known, tuples)
