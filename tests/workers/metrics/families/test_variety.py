"""Oracles: numbers counted by hand, and what was published of 36 captioners."""

import pytest

from parity import systems
from service.contract.formats.vocabularies import MODEL_TOKENIZERS
from workers.metrics.families import variety

ORDINARY = ("init_1", "merge_3")


def test_what_is_counted():
    found = variety.measure_variety(
        ["a dog runs", "a dog", "", "a cat"], training=variety.make_keys(["a cat", "the dog"])
    )
    assert found.mean_length == 7 / 4
    assert found.vocabulary == 4
    assert found.distinct == (4, 3, 1, 0)
    assert found.distinct_share == (4 / 7, 3 / 4, 1.0, 0.0)
    assert found.entropy == pytest.approx((1.842371, 1.5, 0, 0), abs=1e-6)
    assert found.known.mean() == 1 / 4
    assert found.known.tolist() == [False, False, False, True]
    assert found.lengths.tolist() == [3, 2, 0, 2]
    assert variety.measure_variety(["a"]).known is None


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in ORDINARY else [pytest.mark.slow])
        for name in systems.NAMES
    ],
)
def test_flickr8k_systems_say_what_was_published(training, data, name):
    found = variety.measure_variety(systems.system(data, "flickr8k", name).captions, training)
    row = systems.published(data, "flickr8k", name)
    columns = ("mean_cap_len", "vocab_used", "unigram_entropy", "bigram_entropy")
    expected = [float(row[column]) for column in columns]
    assert [found.mean_length, found.vocabulary, *found.entropy[:2]] == pytest.approx(expected)
    assert found.known.mean() == pytest.approx(float(row["num_existing_caps_frac"]))


@pytest.fixture(scope="module")
def training(data):
    """Karpathy's tokens of what is neither for development nor for tests."""
    others = set()
    for name in ("devImages", "testImages"):
        others |= set((data / "flickr8k" / f"Flickr_8k.{name}.txt").read_text("utf-8").split())
    tokens = MODEL_TOKENIZERS["karpathy"]
    lines = systems.lines(data / "flickr8k" / "Flickr8k.token.txt.gz")
    pairs = [line.split("\t") for line in lines]
    return variety.make_keys(
        " ".join(tokens(text)) for key, text in pairs if key.split("#")[0] not in others
    )
