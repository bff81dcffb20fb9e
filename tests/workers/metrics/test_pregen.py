import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import random_statistics
from oracles import pregen as oracle
from service.contract.errors import InvalidColumns, UnknownMetric
from service.contract.metrics import catalogue
from workers.metrics import pregen


def _close(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert math.isinf(found[name]) == math.isinf(value), (name, found[name], value)
        assert (found[name] == 0) == (value == 0), (name, found[name], value)
        if not math.isinf(value):
            assert found[name] == pytest.approx(value, rel=1e-9, abs=1e-300), name


@pytest.mark.long
@pytest.mark.parametrize("hits", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("zeros", [0.0, 0.02, 1.0])
def test_all_672_are_those_of_the_definitions(hits, zeros):
    columns = random_statistics.columns(31, 0, hits, zeros)
    _close(pregen.scores(*columns), oracle.scores(*columns))


_TOKEN = st.tuples(
    st.one_of(st.floats(-60, 0, width=32), st.just(-math.inf), st.just(0.0)), st.integers(0, 2)
)
_DATASET = st.lists(
    st.lists(st.lists(_TOKEN, min_size=1, max_size=6), min_size=1, max_size=7),
    min_size=1,
    max_size=5,
)


@pytest.mark.long
@settings(deadline=None, max_examples=40)
@given(_DATASET)
def test_any_dataset_agrees_with_the_definitions(dataset):
    captions = [caption for image in dataset for caption in image]
    tokens = [token for caption in captions for token in caption]
    columns = (
        np.array([logp for logp, _ in tokens], np.float32),
        np.array([rank for _, rank in tokens], np.uint16),
        np.concatenate([[0], np.cumsum([len(caption) for caption in captions])]),
        np.concatenate([[0], np.cumsum([len(image) for image in dataset])]),
    )
    _close(pregen.scores(*columns), oracle.scores(*columns))


def test_some_names_give_what_all_names_give():
    columns = random_statistics.columns(9, 0, zeros=0.01)
    everything = pregen.scores(*columns)
    assert set(everything) == set(catalogue.PREGEN)
    some = ["median_join_prob_miss0", "max_geomean_pplx_none", "sum_median_count_prefix0"]
    assert pregen.scores(*columns, names=some) == {name: everything[name] for name in some}
    assert pregen.scores(*columns, names=[]) == {}


def test_every_score_lies_in_its_range():
    for seed in range(3):
        for name, value in pregen.scores(*random_statistics.columns(20, seed, zeros=0.001)).items():
            low, high = catalogue.find_metric(name).range
            assert low * (1 - 1e-12) <= value <= high * (1 + 1e-12), name


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint16, np.uint64])
def test_offsets_may_have_any_integer_type(dtype):
    logp, rank, caption_offsets, image_offsets = random_statistics.columns(5, 0)
    expected = pregen.scores(logp, rank, caption_offsets, image_offsets)
    assert expected == pregen.scores(
        logp, rank.astype(dtype), caption_offsets.astype(dtype), image_offsets.astype(dtype)
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": np.zeros(3)}, "a rank for each of 4 tokens, found 3"),
        ({"caption_offsets": np.array([0, 2, 5])}, "caption_offsets: .* rising from 0 to 4"),
        ({"caption_offsets": np.array([0, 2, 2, 4])}, "caption_offsets"),
        ({"caption_offsets": np.array([1, 4])}, "caption_offsets"),
        ({"image_offsets": np.array([0, 1])}, "image_offsets: .* rising from 0 to 2"),
        ({"image_offsets": np.array([0])}, "image_offsets"),
        ({"image_offsets": np.array([0, 0, 2])}, "image_offsets"),
        ({"logp": np.array([-1, -1, np.nan, -1])}, "none of them NaN"),
        ({"logp": np.array([-1, -1, 0.5, -1])}, "at most 0"),
    ],
)
def test_columns_that_contradict_themselves_are_refused(change, message):
    columns = {
        "logp": -np.ones(4),
        "rank": np.zeros(4, np.int64),
        "caption_offsets": np.array([0, 2, 4]),
        "image_offsets": np.array([0, 2]),
    }
    with pytest.raises(InvalidColumns, match=message):
        pregen.scores(**(columns | change))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mean_max_normcount_prefix", "mean_max_normcount_prefix0"),  # the nearest
        ("bleu_4", "bleu_4 is computed from captions"),
    ],
)
def test_what_is_not_computed_from_columns_is_refused(name, said):
    with pytest.raises(UnknownMetric, match=said):
        pregen.scores(*random_statistics.columns(2, 0), names=["perplexity", name])


def test_corpus_perplexity_is_that_of_all_tokens_together():
    for images in (1, 2, 31):
        columns = random_statistics.columns(images, images)
        found = pregen.scores(*columns, names=["perplexity", "corpus_perplexity"])
        assert list(found) == ["perplexity", "corpus_perplexity"]
        expected = math.exp(-math.fsum(columns[0].tolist()) / len(columns[0]))
        assert found["corpus_perplexity"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("logp", [-2000.0, -math.inf])
def test_corpus_perplexity_beyond_a_float_is_infinite(logp):
    columns = np.array([logp, -1.0]), np.array([0, 0]), np.array([0, 2]), np.array([0, 1])
    expected = {"corpus_perplexity": math.inf}
    assert pregen.scores(*columns, names=["corpus_perplexity"]) == expected


BITS = "bits_per_byte"
HALVES = np.log([1 / 2, 1 / 4, 1 / 8, 1, 1 / 2])  # 1, 2, 3, 0 and 1 bit


def _bits(references, logp=HALVES):
    """Of two images, the first with two tokens, the second with two captions."""
    columns = np.asarray(logp), np.zeros(5, int), np.array([0, 2, 4, 5]), np.array([0, 1, 3])
    return pregen.scores(*columns, [BITS], pregen.count_bytes(references))[BITS]


@pytest.mark.parametrize(
    ("references", "expected"),
    [
        ([["cat"], ["dogs", "a"]], 7 / 8),
        ([["Café!"], ["猫", "a"]], 7 / 10),  # 6, 3 and 1 bytes
        ([["🐈 "], ["", "e\u0301"]], 7 / 8),  # 5, 0 and 3
        ([[""], ["", ""]], math.inf),
    ],
)
def test_bits_of_all_tokens_are_divided_by_the_bytes_of_the_references(references, expected):
    assert _bits(references) == pytest.approx(expected, rel=1e-15)


def test_bits_do_not_depend_on_how_a_caption_is_cut_and_are_infinite_where_p_is_0():
    references = [["cat"], ["dogs", "a"]]
    cut = np.log([1 / 8, 1, 1 / 2, 1 / 4, 1 / 2])
    assert _bits(references, cut) == pytest.approx(_bits(references), rel=1e-15)
    assert _bits(references, [*HALVES[:4], -math.inf]) == math.inf


@pytest.mark.parametrize("given", [None, np.array([3]), np.array([3, 4, 5])])
def test_bits_need_the_bytes_of_each_image(given):
    columns = random_statistics.columns(2, 0)
    with pytest.raises(InvalidColumns, match="of each of 2 images, found"):
        pregen.scores(*columns, [BITS], given)
    assert pregen.scores(*columns, ["corpus_perplexity"], given)


def test_bits_of_float32_are_summed_in_float64():
    logp = np.full(1_000_000, -0.1, np.float32)
    columns = logp, np.zeros(len(logp), int), np.array([0, len(logp)]), np.array([0, 1])
    expected = float(np.float32(0.1)) * len(logp) / math.log(2) / 7
    assert pregen.scores(*columns, [BITS], np.array([7]))[BITS] == pytest.approx(
        expected, rel=1e-12
    )
