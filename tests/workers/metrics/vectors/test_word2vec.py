"""Word vectors learned from captions. Oracle: what is near what in a made-up language."""

import os
import subprocess
import sys
from itertools import product

import pytest
from gensim.models import KeyedVectors

from service.contract.errors import AssetRefused
from workers.metrics.vectors import word2vec
from workers.metrics.vectors.word2vec import VectorTrainingOptions

# Animals are on grass and vehicles on roads, in eight colours.
_COLOURS = ("red", "blue", "green", "white", "black", "brown", "grey", "pink")
_ANIMALS = product(_COLOURS, ("dog", "cat", "horse"), ("runs", "jumps"), ("grass", "meadow"))
_VEHICLES = product(_COLOURS, ("car", "truck", "bus"), ("drives", "stops"), ("road", "street"))
CAPTIONS = [
    f"a {colour} {who} {does} on the {where}"
    for colour, who, does, where in [*_ANIMALS, *_VEHICLES]
    for _ in range(2)
]
TRAIN = """
import sys
from pathlib import Path
from workers.metrics.vectors.word2vec import VectorTrainingOptions, train_word_vectors
train_word_vectors(sys.stdin.read().split("\\n"), Path(sys.argv[1]), VectorTrainingOptions(size=8))
"""


def _trained(path, **options):
    word2vec.train_word_vectors(CAPTIONS, path, VectorTrainingOptions(**{"size": 8, **options}))
    return path.read_bytes()


@pytest.mark.processes
def test_another_process_writes_the_same_bytes_whatever_its_hashes(tmp_path):
    command = [sys.executable, "-c", TRAIN, str(tmp_path / "a")]
    environment = {**os.environ, "PYTHONHASHSEED": "1"}
    subprocess.run(command, input="\n".join(CAPTIONS), text=True, env=environment, check=True)
    assert _trained(tmp_path / "b") == (tmp_path / "a").read_bytes()


def test_another_seed_gives_other_vectors_of_the_same_words(tmp_path):
    assert _trained(tmp_path / "a") != _trained(tmp_path / "b", seed=1)
    words = [
        KeyedVectors.load_word2vec_format(str(tmp_path / name), binary=True).index_to_key
        for name in "ab"
    ]
    assert words[0] == words[1]
    assert set(words[0]) == {word for caption in CAPTIONS for word in caption.split()}


def test_words_of_one_kind_are_nearer_than_words_of_two(tmp_path):
    _trained(tmp_path / "vectors", size=20, epochs=60)
    found = KeyedVectors.load_word2vec_format(str(tmp_path / "vectors"), binary=True)
    assert found.similarity("dog", "cat") > found.similarity("dog", "car") + 0.3
    assert found.similarity("truck", "car") > found.similarity("truck", "horse") + 0.3


@pytest.mark.parametrize(("captions", "words"), [([], 0), ([""], 0), (["a dog"] * 5, 2)])
def test_too_few_words_are_refused_with_what_to_do(tmp_path, captions, words):
    expected = f"at least 10 words .* found {words} in {len(captions)} captions: train on more"
    with pytest.raises(AssetRefused, match=expected):
        word2vec.train_word_vectors(captions, tmp_path / "vectors", VectorTrainingOptions())
    assert list(tmp_path.iterdir()) == []


def test_progress_counts_epochs(tmp_path):
    told = []
    word2vec.train_word_vectors(
        CAPTIONS, tmp_path / "a", VectorTrainingOptions(8, epochs=3), lambda *at: told.append(at)
    )
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
