"""Oracle: the definitions of the features in loops over words; idf and vectors by hand."""

import math

import numpy as np
import pytest

from workers.metrics import postgen, references
from workers.metrics.accord import features
from workers.metrics.accord.features import NAMES
from workers.metrics.accord.language import Language
from workers.metrics.family import Task
from workers.metrics.frequencies import Frequencies
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
    return Language(list(HELD), counts, vectors, Frequencies("none", IMAGES, none, none))


def _measured(said, known):
    prepared = references.prepare([PEOPLE], "none", JVM)
    rows = np.zeros(len(said), np.int64)
    task = Task(said, rows, prepared, JVM, tokenizer="none", others=postgen.score)
    return [dict(zip(NAMES, row, strict=True)) for row in features.measure(task, known)]


def _weight(word):
    return math.log(IMAGES / HELD.get(word, 1))


def _alike(one, other):
    if one == other:
        return 1.0
    if one not in ANGLES or other not in ANGLES:
        return 0.0
    return max(0.0, (0.99 * math.cos(ANGLES[one] - ANGLES[other]) - 0.3) / 0.7)


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
    everyone = [word for each in people for word in each]
    agreed = {w: (n - 1) * _weight(w) for w in set(everyone) if (n := _holders(w, people)) > 1}
    hard = [(_shared(own, each), _mass(each)) for each in people]
    soft = [_soft(own, each) for each in people]
    heavy = [word for word in own if _weight(word) > 1]
    runs = {n: [_runs(each, n) for each in people] for n in (2, 3)}
    return {
        "precision": sum(word in everyone for word in own) / len(own),
        "agreed_recall": sum(agreed.get(w, 0) for w in set(own)) / sum(agreed.values()),
        "best_recall": max(met / mass for met, mass in hard),
        "mean_f": np.mean([2 * met / (mass + _mass(own)) for met, mass in hard]),
        "soft_precision": sum(_weight(w) * max(_alike(w, o) for o in everyone) for w in own)
        / _mass(own),
        "soft_agreed_recall": sum(
            mass * max(_alike(w, o) for w in own) for o, mass in agreed.items()
        )
        / sum(agreed.values()),
        "soft_best_recall": max(recall for recall, _ in soft),
        "soft_mean_f": np.mean([f for _, f in soft]),
        "pairs": len(_runs(own, 2) & set().union(*runs[2])) / (len(own) - 1),
        "triples": len(_runs(own, 3) & set().union(*runs[3])) / (len(own) - 2),
        "unrepeated": 1 / (1 + len(heavy) - len(set(heavy))),
        "ended": float(_weight(own[-1]) > 1),
    }


def _holders(word, people):
    return sum(word in each for each in people)


def _runs(words, n):
    return {tuple(words[at : at + n]) for at in range(len(words) - n + 1)}


@pytest.mark.parametrize("said", SAID)
def test_features_follow_from_their_definitions(known, said):
    (found,) = _measured([said], known)
    defined = _defined(said)
    assert {name: found[name] for name in defined} == pytest.approx(defined, abs=1e-3)


def test_order_and_odd_pairs_are_counted(known):
    """No pair is usual in this language; the order is of pairs that a reference has, too."""
    right, turned, strange = _measured(
        ["a dog on a mat", "a mat on a dog", "a dog sit beside a red mat"], known
    )
    assert (right["order"], turned["order"]) == (1, 1 / 2)
    assert right["usual"] == 1
    assert turned["usual"] == 1 / (1 + 1)  # "mat on"
    assert strange["usual"] == 1 / (1 + 3)  # "sit beside", "beside a", "red mat"


def test_cider_is_that_of_the_models_frequencies(known):
    prepared = references.prepare([PEOPLE], "none", JVM)
    rows, said = np.zeros(2, np.int64), ["a dog sit on a mat", "a red cat"]
    scored = postgen.score_tokens("cider_d", said, prepared, rows, JVM, idf=known.frequencies)
    found = _measured(said, known)
    expected = scored.captions["cider_d"] / 10
    assert [each["cider"] for each in found] == pytest.approx(expected)
    assert [each["cider_root"] for each in found] == pytest.approx(np.sqrt(expected))


@pytest.mark.parametrize("said", ["", "a a a", "zorp blick", "on the"])
def test_without_a_word_of_a_reference_that_weighs_anything_all_is_0(known, said):
    (found,) = _measured([said], known)
    assert any(found.values()) == (said == "on the")
