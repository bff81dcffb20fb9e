"""Checks of the oracles against published figures and values worked out by hand.

Provenance: written from the definitions, independent of workers/.
"""

import math
from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest

from oracles import captioner, pregen

INF = math.inf
KINDS = [(a, c) for a in captioner.ARCHITECTURES for c in captioner.CELLS]


# Pre-gen metrics


def prefixes(lengths: Sequence[tuple[int, int]]) -> tuple[list[float], list[int], list[int]]:
    """Columns of captions given as (tokens, prefix of rank 0); the rest has rank 1."""
    rank: list[int] = []
    offsets = [0]
    for tokens, prefix in lengths:
        rank += [0] * prefix + [1] * (tokens - prefix)
        offsets.append(len(rank))
    return [-1.0] * len(rank), rank, offsets


def test_names() -> None:
    names = list(pregen.scores([-1.0], [0], [0, 1], [0, 1]))
    assert len(names) == len(set(names)) == 672
    assert sum(not name.endswith("miss0") for name in names) == 504
    assert {"mean_max_normcount_prefix0", "geomean_join_pplx_none"} <= set(names)


@pytest.mark.parametrize(("first", "expected"), [(5, 0.393), (8, 0.543)])
def test_worked_figures_of_the_paper(first: int, expected: float) -> None:
    columns = prefixes([(10, first), (7, 2), (7, 2), (8, 2)])
    score = pregen.scores(*columns, [0, 2, 4])["mean_max_normcount_prefix0"]
    assert round(score, 3) == expected
    assert score == pytest.approx((first / 10 + 2 / 7) / 2, rel=1e-15)


# Three captions: A and B of the first image, C of the second.
P = [1 / 2, 1 / 4, 1 / 8, 1 / 4, 1 / 4, 1 / 16]
RANK = [0, 1, 0, 0, 0, 3]
BY_HAND = {  # score_filter: A, B, C
    "prob_none": (1 / 64, 1 / 16, 1 / 16),
    "pplx_none": (4, 4, 16),
    "count_none": (3, 2, 1),
    "normcount_none": (1, 1, 1),
    "prob_filter0": (1 / 16, 1 / 16, 0),
    "pplx_filter0": (4, 4, INF),
    "count_filter0": (2, 2, 0),
    "normcount_filter0": (2 / 3, 1, 0),
    "prob_prefix0": (1 / 2, 1 / 16, 0),
    "pplx_prefix0": (2, 4, INF),
    "count_prefix0": (1, 2, 0),
    "normcount_prefix0": (1 / 3, 1, 0),
    "prob_miss0": (1 / 4, 0, 1 / 16),
    "pplx_miss0": (4, INF, 16),
    "count_miss0": (1, 0, 1),
    "normcount_miss0": (1 / 3, 0, 1),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_captions_by_hand(name: str) -> None:
    a, b, c = BY_HAND[name]
    scores = pregen.scores(np.log(P), np.array(RANK), np.array([0, 3, 5, 6]), np.array([0, 2, 3]))
    expected = {
        "sum_join": a + b + c,
        "mean_join": (a + b + c) / 3,
        "median_join": sorted([a, b, c])[1],
        "max_join": max(a, b, c),
        "min_join": min(a, b, c),
        "sum_sum": a + b + c,
        "mean_mean": ((a + b) / 2 + c) / 2,
        "median_median": ((a + b) / 2 + c) / 2,
        "max_min": max(min(a, b), c),
        "min_max": min(max(a, b), c),
        "geomean_geomean": 0.0 if 0 in (a, b, c) else math.sqrt(math.sqrt(a * b) * c),
    }
    got = {pools: scores[f"{pools}_{name}"] for pools in expected}
    assert got == pytest.approx(expected, rel=1e-14)


def test_zero_probability() -> None:
    scores = pregen.scores([-INF, math.log(0.5)], [7, 0], [0, 2], [0, 1])
    assert scores["mean_mean_prob_none"] == 0.0
    assert scores["mean_mean_pplx_none"] == INF
    assert scores["geomean_geomean_pplx_none"] == INF
    assert scores["mean_mean_count_none"] == 2.0
    assert scores["mean_mean_prob_filter0"] == pytest.approx(0.5)
    assert scores["mean_mean_pplx_filter0"] == pytest.approx(2.0)


def test_infinite_captions_in_every_pool() -> None:
    # perplexities: inf, 2, inf, 8 in one image
    logp = [-INF, math.log(1 / 2), -INF, math.log(1 / 8)]
    scores = pregen.scores(logp, [0] * 4, range(5), [0, 4])
    got = {pool: scores[f"mean_{pool}_pplx_none"] for pool in pregen.POOLS}
    finite = {"min": 2.0}
    assert got == pytest.approx({pool: finite.get(pool, INF) for pool in pregen.POOLS})
    both = pregen.scores([-INF, -INF], [0, 0], range(3), [0, 2])
    assert both["median_median_pplx_none"] == INF  # not nan


def test_underflow_and_overflow() -> None:
    # e ** 700 is still a float64, e ** 800 and 2 * e ** 709.5 are not
    scores = pregen.scores([-800.0, -600.0], [0, 0], [0, 2], [0, 1])
    assert scores["mean_mean_prob_none"] == 0.0
    assert scores["mean_mean_pplx_none"] == pytest.approx(math.exp(700.0), rel=1e-12)
    assert pregen.scores([-800.0], [0], [0, 1], [0, 1])["mean_mean_pplx_none"] == INF
    two = pregen.scores([-709.5, -709.5], [0, 0], [0, 1, 2], [0, 2])
    assert two["max_max_pplx_none"] < INF
    assert two["mean_mean_pplx_none"] == two["sum_sum_pplx_none"] == INF


@pytest.mark.parametrize(
    ("captions", "images"), [([0, 1, 1], [0, 2]), ([0, 1], [0, 0, 1]), ([0, 1], [0]), ([0], [0])]
)
def test_empty_pieces_are_refused(captions: list[int], images: list[int]) -> None:
    with pytest.raises(ValueError, match=r"offsets|every"):
        pregen.scores([-1.0], [0], captions, images)


# Captioners


@pytest.mark.parametrize(
    ("architecture", "size", "expected"),
    [
        ("init", 512, (6_274_539, 11_272_439, 12_683_864)),
        ("pre", 512, (6_274_539, 11_272_439, 12_683_864)),
        ("par", 256, (2_942_187, 5_443_575, 6_149_976)),
        ("merge", 128, (1_600_747, 3_478_007, 4_008_152)),
    ],
)
def test_parameter_counts(architecture: str, size: int, expected: tuple[int, ...]) -> None:
    got = []
    for vocabulary_size in (2539, 7415, 8792):
        named = captioner.shapes(architecture, "gru", size, 4096, vocabulary_size)
        got.append(sum(math.prod(shape) for shape in named.values()))
    assert tuple(got) == expected


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


FEATURES = np.array([3.0, 4.0])  # normalised .6, .8; projected .6 * 1 + .8 * .5 + .5 = 1.5
IMAGE = 1.5
EMBEDDING = [0.3, -0.7, 0.9]


def tiny(architecture: str, cell: str) -> dict[str, captioner.Floats]:
    """Size 1, two features, three words; every number of the gates differs from the others."""
    named = captioner.shapes(architecture, cell, 1, 2, 3)
    tensors: dict[str, captioner.Floats] = {}
    for name, shape in named.items():
        tensors[name] = 0.1 * np.arange(1, math.prod(shape) + 1, dtype=np.float64).reshape(shape)
    tensors["image.weight"] = np.array([[1.0], [0.5]])
    tensors["image.bias"] = np.array([0.5])
    tensors["embedding.weight"] = np.array(EMBEDDING)[:, None]
    if "initial" in tensors:
        tensors["initial"] = np.array([0.4])
    return tensors


def scalar_gru(x: Sequence[float], h: float) -> float:
    """Tiny's GRU in scalars; the rows of its gates are (.1, .2), (.3, .4), ... and so on."""
    inputs = [*x, h]
    r = sigmoid(sum((0.2 * k + 0.1) * v for k, v in enumerate(inputs)) + 0.1)
    u = sigmoid(sum((0.2 * k + 0.2) * v for k, v in enumerate(inputs)) + 0.2)
    c = math.tanh(sum((0.1 * k + 0.1) * v for k, v in enumerate([*x, r * h])) + 0.1)
    return u * h + (1 - u) * c


def scalar_torch_gru(x: Sequence[float], h: float) -> float:
    """The same numbers in the equations of torch.nn.GRU; the state's own bias is .1."""
    inputs = [*x, h]
    r = sigmoid(sum((0.2 * k + 0.1) * v for k, v in enumerate(inputs)) + 0.1)
    z = sigmoid(sum((0.2 * k + 0.2) * v for k, v in enumerate(inputs)) + 0.2)
    given = sum((0.1 * k + 0.1) * v for k, v in enumerate(x)) + 0.1
    kept = (0.1 * len(x) + 0.1) * h + 0.1
    return (1 - z) * math.tanh(given + r * kept) + z * h


def scalar_lstm(x: Sequence[float], h: float, c: float) -> tuple[float, float]:
    """Tiny's LSTM in scalars; the rows of its gates are (.1, .2, .3, .4), (.5, ...), ..."""
    i, f, g, o = (
        sum((0.4 * k + 0.1 * gate) * v for k, v in enumerate([*x, h])) + 0.1 * gate
        for gate in (1, 2, 3, 4)
    )
    c = sigmoid(f) * c + sigmoid(i) * math.tanh(g)
    return sigmoid(o) * math.tanh(c), c


@pytest.mark.parametrize(("architecture", "cell"), KINDS)
def test_forward_by_hand(architecture: str, cell: str) -> None:
    words = [2, 1]
    inputs: list[list[float]] = [[EMBEDDING[0]], [EMBEDDING[2]], [EMBEDDING[1]]]
    h, c = {"init": IMAGE, "pre": 0.0, "par": 0.4, "merge": 0.4}[architecture], 0.0
    if architecture == "pre":
        inputs = [[IMAGE], *inputs]
    if architecture == "par":
        inputs = [[IMAGE, *x] for x in inputs]
    states: list[float] = []
    for x in inputs:
        if cell == "gru":
            h = scalar_gru(x, h)
        elif cell == "torch_gru":
            h = scalar_torch_gru(x, h)
        else:
            h, c = scalar_lstm(x, h, c)
        states.append(h)
    expected: list[list[float]] = []
    for state in states[-3:]:
        row = [0.1 * (v + 1) for v in range(3)]  # the bias
        if architecture == "merge":  # output rows: image (.1, .2, .3), state (.4, .5, .6)
            row = [b + 0.1 * (v + 1) * IMAGE + 0.1 * (v + 4) * state for v, b in enumerate(row)]
        else:
            row = [b + 0.1 * (v + 1) * state for v, b in enumerate(row)]
        expected.append(row)
    got = captioner.forward(architecture, cell, tiny(architecture, cell), FEATURES, words)
    np.testing.assert_allclose(got, expected, rtol=1e-13)


def test_forward_by_hand_in_numbers() -> None:
    """All gates at zero: the GRU halves its state at each step, the LSTM's is nothing."""
    for cell, states in (("gru", [0.75, 0.375]), ("lstm", [0.0, 0.0])):
        tensors = tiny("init", cell)
        for name in tensors:
            if name.startswith(("gates", "candidate")):
                tensors[name] = np.zeros_like(tensors[name])
        logits = captioner.forward("init", cell, tensors, FEATURES, [2])
        expected = [[0.1 + 0.1 * s, 0.2 + 0.2 * s, 0.3 + 0.3 * s] for s in states]
        np.testing.assert_allclose(logits, expected, rtol=1e-14)


def test_features_are_normalised_and_zero_stays_zero() -> None:
    tensors = tiny("init", "gru")
    one = captioner.forward("init", "gru", tensors, FEATURES, [2])
    np.testing.assert_allclose(captioner.forward("init", "gru", tensors, 7 * FEATURES, [2]), one)
    zero = captioner.forward("init", "gru", tensors, 0 * FEATURES, [2])
    state = scalar_gru([EMBEDDING[0]], 0.5)  # the image is its bias
    np.testing.assert_allclose(zero[0], [0.1 * (v + 1) * (1 + state) for v in range(3)])


def unigram(p: Sequence[float]) -> dict[str, captioner.Floats]:
    """A model that gives each id its probability in `p`, whatever came before."""
    tensors = {
        name: np.zeros(shape)
        for name, shape in captioner.shapes("merge", "gru", 2, 2, len(p)).items()
    }
    tensors["output.bias"] = np.log(p)
    return tensors


def test_columns_by_hand() -> None:
    references = [[[2, 1], []], [], [[3]]]
    logp, rank, caption_offsets, image_offsets = captioner.columns(
        "merge", "gru", unigram([0.4, 0.2, 0.2, 0.2]), np.ones((3, 2)), references
    )
    np.testing.assert_allclose(np.exp(logp), [0.2, 0.2, 0.4, 0.4, 0.2, 0.4], rtol=1e-14)
    assert rank.tolist() == [1, 1, 0, 0, 1, 0]  # equals do not count
    assert caption_offsets.tolist() == [0, 3, 4, 6]
    assert image_offsets.tolist() == [0, 2, 2, 3]


def test_greedy_by_hand() -> None:
    image = np.ones(2)
    tensors = unigram([0.3, 0.3, 0.2, 0.2])
    assert captioner.greedy("merge", "gru", tensors, image) == []  # END is the lowest of equals
    assert captioner.greedy("merge", "gru", tensors, image, min_words=2) == [1, 1]
    assert captioner.greedy("merge", "gru", tensors, image, min_words=2, unk=False) == [2, 2]
    endless = unigram([0.1, 0.2, 0.3, 0.4])
    assert captioner.greedy("merge", "gru", endless, image, max_words=3) == [3, 3, 3]


def test_beam_by_hand() -> None:
    image = np.ones(2)

    def check(
        p: Sequence[float],
        words: list[int],
        probability: float,
        width: int = 3,
        min_words: int = 4,
        max_words: int = 50,
        unk: bool = False,
    ) -> None:
        got, logp = captioner.beam(
            "merge", "gru", unigram(p), image, width, min_words, max_words, unk
        )
        assert got == words
        assert math.exp(logp) == pytest.approx(probability, rel=1e-13)

    p = [0.4, 0.3, 0.2, 0.1]  # END, UNK, two words
    check(p, [], 0.4, min_words=0)
    check(p, [], 0.4, min_words=0, unk=True)
    check(p, [2, 2], 0.2 * 0.2 * 0.4, min_words=2)  # nothing is renormalised
    check(p, [1, 1], 0.3 * 0.3 * 0.4, min_words=2, unk=True)
    check(p, [2] * 4, 0.2**4 * 0.4)
    check(p, [2], 0.2, max_words=1)  # cut: without END
    check(p, [], 1.0, min_words=0, max_words=0)
    # The complete [] waits in the beam until .65 ** n has fallen below .25.
    check([0.25, 0.1, 0.65], [], 0.25, min_words=0)
    check([0.25, 0.1, 0.65], [2] * 3, 0.65**3, min_words=0, max_words=3)
    # With one place, [] is pushed out at once.
    check([0.25, 0.1, 0.65], [2] * 6, 0.65**6, min_words=0, width=1, max_words=6)


@pytest.mark.parametrize(("architecture", "cell"), KINDS)
def test_beam_at_its_two_ends(architecture: str, cell: str) -> None:
    """Width 1 is greedy; a beam wide enough finds the best of all captions."""
    rng = np.random.default_rng(5)
    tensors = captioner.random_tensors(architecture, cell, 3, 5, 5, rng, scale=1.0)
    image = rng.standard_normal(5)
    narrow, _ = captioner.beam(
        architecture, cell, tensors, image, width=1, min_words=1, max_words=3
    )
    assert narrow == captioner.greedy(
        architecture, cell, tensors, image, min_words=1, max_words=3, unk=False
    )

    every: list[tuple[float, list[int]]] = []
    for length in (1, 2, 3):
        for caption in product([2, 3, 4], repeat=length):
            words = list(caption)
            references = [[words]]
            logp, *_ = captioner.columns(architecture, cell, tensors, image[None], references)
            every.append((float(np.sum(logp if length < 3 else logp[:3])), words))
    best, best_words = max(every)
    words, total = captioner.beam(
        architecture, cell, tensors, image, width=1000, min_words=1, max_words=3
    )
    assert words == best_words
    assert total == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize(("architecture", "cell"), KINDS)
def test_prefix0_is_the_common_prefix_with_greedy(architecture: str, cell: str) -> None:
    rng = np.random.default_rng(11)
    tensors = captioner.random_tensors(architecture, cell, 4, 6, 5, rng, scale=1.0)
    features = rng.standard_normal((4, 6))
    matches: list[int] = []
    references: list[list[list[int]]] = []
    for row in features:
        walk = captioner.greedy(architecture, cell, tensors, row, max_words=6)
        captions = [walk[:5], walk[:2], [*walk[:3], 2, 3], rng.integers(1, 5, 4).tolist()]
        references.append(captions)
        for caption in captions:
            pairs = list(zip([*caption, captioner.END], [*walk, captioner.END], strict=False))
            equal = [a == b for a, b in pairs]
            matches.append(equal.index(False) if False in equal else len(equal))
    columns = captioner.columns(architecture, cell, tensors, features, references)
    scores = pregen.scores(*columns)
    assert scores["sum_join_count_prefix0"] == sum(matches)
    assert scores["max_join_count_prefix0"] == max(matches)
    assert scores["min_join_count_prefix0"] == min(matches)
