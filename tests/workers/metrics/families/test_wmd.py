"""Oracle: gensim's wmdistance, on the same vectors, pair by pair."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from gensim.models import KeyedVectors

from helpers.builders import captions_with_references
from service.contract.errors import MetricFailed
from workers.metrics import references
from workers.metrics.families import wmd
from workers.metrics.families.wmd import STOP_WORDS
from workers.metrics.family import ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.vectors import word_vectors

INF = float("inf")
STORED, UNIT = (wmd.make_wmd_family("wmd", unit=unit) for unit in (False, True))
SIZE = 20
WORDS = [f"w{index}" for index in range(40)]
SAID = [*WORDS, "the", "a", "of", "don't", "Of", "unheard"]  # 42 have vectors: two stop words, too


def _ours(words, vectors):
    keys = b"".join(word_vectors.hash_word(word.encode()) for word in words)
    return word_vectors.collect_vectors("0123456789abcdef", vectors, keys)


def _vectors():
    return np.random.default_rng(0).normal(size=(42, SIZE)).astype(np.float32)


def _task(captions, people):
    jvm = Jvm()  # never asked
    prepared = references.prepare_references(people, "none", jvm)
    return ScoringInput(captions, np.arange(len(captions)), prepared, jvm)


def _measure(task, vectors, *, unit=False):
    return (UNIT if unit else STORED).measure(replace(task, tools={"vectors": vectors}))


def _set(images):
    """Captions with references, of which some have the same words in another order."""
    captions, people = captions_with_references(SAID, images, 0)
    rng = np.random.default_rng(0)
    for image in rng.integers(0, images, images // 5):
        people[image][0] = " ".join(rng.permutation(captions[image].split()))
    captions[0], people[1], people[2] = "", [""], ["of", captions[2]]
    return captions, people


def _gensim(keyed, caption, people, unit):
    def kept(text):
        return [word for word in text.split(" ") if word not in STOP_WORDS]

    return min(keyed.wmdistance(kept(caption), kept(text), norm=unit) for text in people)


@pytest.mark.long
@pytest.mark.parametrize("unit", [False, True])
def test_distances_are_gensims(unit):
    captions, people = _set(300)
    found = _measure(_task(captions, people), _ours(SAID[:42], _vectors()), unit=unit)
    keyed = KeyedVectors(SIZE)
    keyed.add_vectors(SAID[:42], _vectors())
    expected = [_gensim(keyed, c, p, unit) for c, p in zip(captions, people, strict=True)]
    np.testing.assert_allclose(found.captions["wmd_distance"], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.captions["wmd"], np.exp(np.negative(expected)), atol=1e-12)
    assert 0 < sum(np.isinf(expected)) < 100
    assert sum(np.array(expected) == 0) > 10


AXES = np.eye(5, dtype=np.float32) * [[3], [4], [0], [1], [9]]  # right angles: 3, 4, 5 apart
NAMED = ["three", "four", "zero", "one", "the"]


def test_different_words_of_equal_vectors_are_0_apart():
    """By definition; gensim answers infinity, afraid for its solver."""
    vectors = np.ones((4, 3), np.float32)
    task = _task(["a0 b0"], [["c0 d0"]])
    found = _measure(task, _ours(["a0", "b0", "c0", "d0"], vectors))
    assert found.captions["wmd"].tolist() == [1.0]


def test_a_caption_without_distance_scores_0_and_has_no_part_in_the_mean_distance():
    task = _task(["three", "", "three"], [["four"], ["four"], ["zero"]])
    found = _measure(task, _ours(NAMED, AXES))
    expected = {"wmd": (np.exp(-5) + 0 + np.exp(-3)) / 3, "wmd_distance": 4}
    assert STORED.corpus(found.statistics) == pytest.approx(expected, rel=1e-15)
    alone = {name: values[1:2] for name, values in found.statistics.items()}
    assert STORED.corpus(alone) == {"wmd": 0, "wmd_distance": INF}
    for values in found.statistics.values():
        assert np.isfinite(values).all()
        assert values.dtype == np.float64


def test_a_solver_that_does_not_end_is_an_error_not_a_number(monkeypatch):
    monkeypatch.setattr(wmd, "_solver", lambda: lambda *args: (None, 0.5, None, None, 3))
    with pytest.raises(MetricFailed, match=r"transport of \(2, 3\) words"):
        _measure(_task(["w1 w2"], [["w3 w4 w5"]]), _ours(SAID[:42], _vectors()))


def test_the_list_of_stop_words_has_nltks_length_and_no_word_of_a_picture():
    assert len(STOP_WORDS) == 179
    assert {"a", "any", "the", "don", "don't", "s", "wouldn't", "yourselves"} <= STOP_WORDS
    assert not {"man", "two", "near", "standing", "front", "also"} & STOP_WORDS


@pytest.mark.processes
def test_what_takes_seconds_to_import_is_imported_by_what_needs_it_alone():
    code = (
        "import sys, numpy as np\n"
        "import workers.cli.assets, workers.jobs.toolbox, workers.metrics.postgen\n"
        "import workers.offline.assets, workers.metrics.vectors.word2vec\n"
        "from workers.metrics.families import wmd\n"
        "wmd._distance(np.ones(2) / 2, np.ones(2) / 2, np.eye(2))\n"
        "print([name for name in ('torch', 'transformers', 'gensim') if name in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


def test_unit_length_is_another_distance_and_a_vector_of_zeros_stays():
    task = _task(["three", "three"], [["four"], ["zero"]])
    found = _measure(task, _ours(NAMED, AXES), unit=True)
    assert found.captions["wmd_distance"] == pytest.approx([np.sqrt(2), 1], rel=1e-15)
