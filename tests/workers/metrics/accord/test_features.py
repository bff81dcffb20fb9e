"""Oracle: the definitions of the features in loops over words; idf and vectors by hand."""

import math
from collections import Counter

import numpy as np
import pytest

from oracles.caption_definitions import count_common
from workers.metrics import postgen, references
from workers.metrics.accord import caption_features
from workers.metrics.accord.caption_features import NAMES
from workers.metrics.accord.language import AccordLanguage
from workers.metrics.family import ScoringInput
from workers.metrics.frequencies import DocumentFrequencies
from workers.metrics.java.jvm import Jvm

JVM = Jvm()  # never asked
IMAGES = 100
HELD = {"a": 100, "on": 60, "dog": 10, "cat": 10, "sit": 20, "mat": 5, "rug": 5, "red": 8}
ANGLES = {"dog": 0.0, "cat": 0.8, "mat": 2.0, "rug": 2.3, "sit": 4.0, "red": 5.0}
PEOPLE = ["a dog sit on a mat", "a red dog on a rug", "the dog on the mat"]
SAID = [
    "a cat sit on a rug",
    "a dog on a mat",
    "mat a on dog a",
    "dog dog dog",
    "a zorp on a red mat a",
]


@pytest.fixture(scope="module")
def known():
    angles = np.array([ANGLES.get(word, math.nan) for word in HELD])
    vectors = np.nan_to_num(np.stack([np.cos(angles), np.sin(angles)], axis=1)).astype(np.float16)
    none = np.zeros(0, np.int64)
    counts = np.array(list(HELD.values()), np.uint32)
    return AccordLanguage(
        list(HELD), counts, vectors, DocumentFrequencies("none", IMAGES, none, none)
    )


def _measured(said, known, people=PEOPLE):
    prepared = references.prepare_references([people], "none", JVM)
    rows = np.zeros(len(said), np.int64)
    task = ScoringInput(said, rows, prepared, JVM, tokenizer="none", others=postgen.score_family)
    return [
        dict(zip(NAMES, row, strict=True)) for row in caption_features.measure_features(task, known)
    ]


def _weight(word):
    return math.log(IMAGES / HELD.get(word, 1))


def _alike(one, other):
    if one == other:
        return 1.0
    if one not in ANGLES or other not in ANGLES:
        return 0.0
    return max(0.0, (0.99 * math.cos(ANGLES[one] - ANGLES[other]) - 0.5) / 0.5)


def _mass(words):
    return sum(map(_weight, words))


def _shared(own, theirs):
    return sum(min(own.count(w), theirs.count(w)) * _weight(w) for w in set(own))


def _soft(own, theirs):
    precision = sum(_weight(w) * max(_alike(w, o) for o in theirs) for w in own) / _mass(own)
    recall = sum(_weight(o) * max(_alike(w, o) for w in own) for o in theirs) / _mass(theirs)
    return recall, 2 * precision * recall / (precision + recall)


def _defined(said):
    own, people = said.split(), [each.split() for each in PEOPLE]
    holders = Counter(word for each in people for word in set(each))
    agreed = {word: (many - 1) * _weight(word) for word, many in holders.items() if many > 1}
    soft = [_soft(own, each) for each in people]
    return {
        "best_recall": max(_shared(own, each) / _mass(each) for each in people),
        "soft_agreed_recall": sum(
            mass * max(_alike(w, o) for w in own) for o, mass in agreed.items()
        )
        / sum(agreed.values()),
        "soft_best_recall": max(recall for recall, _ in soft),
        "soft_mean_f": np.mean([f for _, f in soft]),
        "in_order": np.mean(
            [2 * count_common(own, each) / (len(own) + len(each)) for each in people]
        ),
        "ended": float(_weight(own[-1]) > 1),
    }


@pytest.mark.parametrize("said", SAID)
def test_features_follow_from_their_definitions(known, said):
    (found,) = _measured([said], known)
    defined = _defined(said)
    assert {name: found[name] for name in defined} == pytest.approx(defined, abs=1e-3)


def test_odd_pairs_are_counted_unless_a_reference_has_them(known):
    """No pair is usual in this language."""
    right, turned, strange = _measured(
        ["a dog on a mat", "a mat on a dog", "a dog sit beside a red mat"], known
    )
    assert right["usual"] == 1
    assert turned["usual"] == 1 / (1 + 1)  # "mat on"
    assert strange["usual"] == 1 / (1 + 3)  # "sit beside", "beside a", "red mat"


def test_a_reference_without_words_has_nothing_that_a_caption_could_say(known):
    """It is one of those over which means are taken."""
    (with_it,) = _measured(["a dog on a mat"], known, ["a dog on a mat", ""])
    (without,) = _measured(["a dog on a mat"], known, ["a dog on a mat"])
    assert without["in_order"] == without["soft_mean_f"] == pytest.approx(1)
    assert with_it["in_order"] == with_it["soft_mean_f"] == pytest.approx(1 / 2)
    assert with_it["best_recall"] == 1


def test_cider_is_that_of_the_models_frequencies(known):
    prepared = references.prepare_references([PEOPLE], "none", JVM)
    rows, said = np.zeros(2, np.int64), ["a dog sit on a mat", "a red cat"]
    scored = postgen.score_tokens("cider_d", said, prepared, rows, JVM, idf=known.frequencies)
    found = _measured(said, known)
    expected = scored.captions["cider_d"] / 10
    assert [each["cider"] for each in found] == pytest.approx(expected)


@pytest.mark.parametrize("said", ["", "a a a", "zorp blick", "on the"])
def test_without_a_word_of_a_reference_that_weighs_anything_all_is_0(known, said):
    (found,) = _measured([said], known)
    assert any(found.values()) == (said == "on the")
