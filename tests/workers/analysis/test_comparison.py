"""Oracles: all exchanges of a few images, counted out; Student's paired test; sacreBLEU's own
paired tests of the same texts; what is promised, of many made-up experiments.
"""

from itertools import product

import numpy as np
import pytest
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest
from scipy import stats

from helpers.builders import sentence
from helpers.random_statistics import FAMILIES, scores, statistics
from service.contract.errors import MetricUnavailable
from workers.analysis import comparison
from workers.analysis.comparison import compare_scores
from workers.analysis.pregen_intervals import PregenColumns
from workers.metrics import postgen, references

WORDS = ["a", "the", "man", "dog", "cat", "runs", "sits", "on", "grass", "big"]


def _two(images, gap, seed, spread=0.2):
    """Scores of captions of two systems, the first better by `gap` on average."""
    rng = np.random.default_rng(seed)
    of_image = rng.random(images)
    a, b = (of_image + rng.normal(mean, spread, images) for mean in (gap, 0.0))
    return scores("rouge_l", {"rouge_l": a}), scores("rouge_l", {"rouge_l": b})


@pytest.mark.long
def test_p_is_the_share_of_all_exchanges_that_set_them_as_far_apart():
    for family in ("rouge_l", "bleu"):
        a, b = statistics(family, 10, 1), statistics(family, 10, 2)
        found = compare_scores(scores(family, a), scores(family, b))
        farther = dict.fromkeys(found, 0)
        for coins in product((False, True), repeat=10):
            mixed = [
                {name: _choose(coins, one[name], other[name]) for name in one}
                for one, other in ((a, b), (b, a))
            ]
            mine, others = (postgen.compute_corpus_scores(family, each) for each in mixed)
            for name, each in found.items():
                gap = abs(mine[name] - others[name])
                farther[name] += gap >= abs(each.difference) * (1 - 1e-9)
        for name, each in found.items():
            expected = farther[name] / 2**10
            assert each.p == pytest.approx(expected, abs=5 * np.sqrt(0.25 / 10_000) + 1e-3)


def _choose(coins, one, other):
    return np.where(np.reshape(coins, (-1, *[1] * (one.ndim - 1))), other, one)


def test_of_means_it_is_students_paired_test():
    a, b = _two(500, 0.02, 7)
    found = compare_scores(a, b)["rouge_l"]
    expected = stats.ttest_rel(a.statistics["rouge_l"], b.statistics["rouge_l"])
    assert 0.01 < expected.pvalue < 0.2
    assert found.p == pytest.approx(expected.pvalue, abs=0.01)
    gaps = a.statistics["rouge_l"] - b.statistics["rouge_l"]
    error = np.std(gaps) / np.sqrt(500)
    assert found.difference == pytest.approx(gaps.mean())
    bounds = found.difference - 1.96 * error, found.difference + 1.96 * error
    assert found.interval == pytest.approx(bounds, abs=0.2 * error)
    assert found.minimum_detectable == pytest.approx((1.95996 + 0.84162) * error, rel=0.08)


@pytest.mark.slow
def test_chance_is_taken_for_a_difference_in_5_of_100_experiments():
    """And a difference as large as is said to be detectable is found in 80 of 100."""
    found = [_compared(0.0, seed) for seed in range(1000)]
    false = np.mean([each.p < 0.05 for each in found])
    assert false == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 1000))
    gap = np.mean([each.minimum_detectable for each in found])
    power = np.mean([_compared(gap, seed).p < 0.05 for seed in range(1000)])
    assert power == pytest.approx(0.8, abs=4 * np.sqrt(0.8 * 0.2 / 1000))


def _compared(gap, seed):
    return compare_scores(*_two(60, gap, seed), trials=1000)["rouge_l"]


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_a_system_beside_itself_and_turned_round(family):
    one, other = (scores(family, statistics(family, 80, seed)) for seed in (1, 2))
    for each in compare_scores(one, one, trials=200).values():
        assert (each.difference, each.interval, each.p) == (0.0, (0.0, 0.0), 1.0)
    forth, back = compare_scores(one, other, trials=200), compare_scores(other, one, trials=200)
    for name, each in forth.items():
        assert (each.a, each.b) == (one.corpus[name], other.corpus[name])
        assert each.difference == -back[name].difference
        assert each.p == back[name].p
        assert each.interval == pytest.approx([-bound for bound in reversed(back[name].interval)])


def test_what_formats_and_devices_differ_by_is_no_difference():
    """Every image a little worse, as another program's rounding makes it: a paired test would be
    sure of it.
    """
    values = np.random.default_rng(1).random(300) + 1
    least = 1e-4 * values.mean()
    for gap, p in ((0.9 * least, 1.0), (1.1 * least, 1 / 1001)):
        pair = scores("rouge_l", {"rouge_l": values + gap}), scores("rouge_l", {"rouge_l": values})
        for sign, (a, b) in ((1, pair), (-1, pair[::-1])):
            found = compare_scores(a, b, trials=1000)["rouge_l"]
            assert found.difference == pytest.approx(sign * gap)
            assert found.p == p
            expected = sorted((0, sign * gap)) if p == 1 else (sign * gap, sign * gap)
            assert found.interval == pytest.approx(expected, abs=1e-9)


def test_nothing_is_known_of_one_image():
    found = compare_scores(*_two(1, 0.5, 1))["rouge_l"]
    assert found.difference is not None
    assert (found.interval, found.p, found.minimum_detectable) == (None, None, None)


@pytest.mark.long
def test_an_infinite_score_has_no_difference():
    kept = statistics("wmd", 30) | {"measured": np.zeros(30)}
    found = compare_scores(scores("wmd", kept), scores("wmd", statistics("wmd", 30)))
    assert found["wmd_distance"].difference is None
    assert found["wmd_distance"].p is None
    assert found["wmd"].p is not None


def test_what_was_not_computed_alike_or_of_other_images_is_not_compared():
    kept = statistics("cider_d", 30)
    ours, theirs = (scores("cider_d", kept, f"df:corpus(n={n})|v:2") for n in (30, 7))
    with pytest.raises(MetricUnavailable, match=r"df: corpus\(n=30\) and corpus\(n=7\)"):
        compare_scores(ours, theirs)
    with pytest.raises(MetricUnavailable, match="30 captions and 29"):
        compare_scores(scores("cider_d", kept), scores("cider_d", statistics("cider_d", 29)))


@pytest.mark.long
def test_sacrebleu_says_the_same_of_the_same_texts(monkeypatch):
    """BLEU of made-up captions, one system a little better than the other."""
    rng = np.random.default_rng(0)
    people = [[sentence(rng, WORDS, 14) for _ in range(3)] for _ in range(300)]
    said = [_disturbed(rng, people, share) for share in (0.42, 0.46)]
    refs, rows = references.index_tokens(people, "none"), np.arange(300)
    ours = [postgen.score_tokens("bleu", captions, refs, rows, None) for captions in said]
    found = compare_scores(*ours)["bleu_4"]
    monkeypatch.setenv("SACREBLEU_SEED", "1")
    metrics = {"BLEU": BLEU(tokenize="none", smooth_method="none")}
    names = list(zip("ab", said, strict=True))
    streams = [list(stream) for stream in zip(*people, strict=True)]
    test = PairedTest(names, metrics, streams, test_type="ar", n_samples=10_000)
    first, second = test()[1]["BLEU"]
    assert [100 * found.a, 100 * found.b] == pytest.approx([first.score, second.score])
    assert 0.001 < second.p_value < 0.3
    assert found.p == pytest.approx(second.p_value, abs=0.015)


def _disturbed(rng, people, share):
    """A reference of each image, some of whose words are others."""
    return [
        " ".join(rng.choice(WORDS) if rng.random() < share else word for word in image[0].split())
        for image in people
    ]


def _columns(images, seed, hits):
    rng = np.random.default_rng(seed)
    lengths = np.random.default_rng(0).integers(2, 12, images * 3)  # the same references
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rank = np.where(rng.random(offsets[-1]) < hits, 0, 5)
    logp = -rng.exponential(2.0, offsets[-1])
    return PregenColumns(logp, rank, offsets, np.arange(0, images * 3 + 1, 3))


def test_pregen_metrics_are_compared_image_by_image():
    a, b = _columns(200, 1, 0.62), _columns(200, 2, 0.6)
    names = ["mean_max_normcount_prefix0", "perplexity", "mean_join_normcount_filter0"]
    found = comparison.compare_pregen(a, b, names)
    values = [each.images["max_normcount_prefix0"] for each in (a, b)]
    expected = stats.ttest_rel(*values)
    first = found["mean_max_normcount_prefix0"]
    assert first.difference == pytest.approx(values[0].mean() - values[1].mean())
    assert first.p == pytest.approx(expected.pvalue, abs=0.015)
    assert list(found) == names
    for each in found.values():
        assert each.interval[0] < each.difference < each.interval[1]
        assert 0 < each.p < 1
