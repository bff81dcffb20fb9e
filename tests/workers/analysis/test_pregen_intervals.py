"""Oracles: columns of the images that a resample draws, by the definitions; binomial laws, counted
out; many plain resamples.
"""

import math
from dataclasses import replace

import numpy as np
import pytest

from helpers import random_statistics
from oracles import pregen as oracle
from service.contract.metrics import catalogue
from workers.analysis import pregen_intervals, resamples
from workers.analysis.pregen_intervals import PregenColumns
from workers.metrics import pregen

ALL = list(catalogue.PREGEN)
SUMMED = [name for name in ALL if name.split("_")[0] in ("sum", "mean", "geomean")]


def _material(*shape, **shares):
    return PregenColumns(*random_statistics.columns(*shape, **shares))


def _repeated(material, counts):
    """The columns of a dataset in which each image stands so often."""
    captions, lengths = [], []
    for image in np.repeat(np.arange(len(counts)), counts):
        first, last = material.image_offsets[image : image + 2]
        captions += range(first, last)
        lengths.append(last - first)
    spans = [slice(*material.caption_offsets[at : at + 2]) for at in captions]
    sizes = [span.stop - span.start for span in spans]
    return (
        np.concatenate([material.logp[span] for span in spans]),
        np.concatenate([material.rank[span] for span in spans]),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([[0], np.cumsum(lengths)]),
    )


@pytest.mark.parametrize(("hits", "zeros"), [(0.5, 0.0), (0.9, 0.01), (1.0, 0.0)])
def test_a_resample_scores_as_the_dataset_of_its_images_would(hits, zeros):
    material = _material(25, 1, hits=hits, zeros=zeros)
    (weights,) = resamples.draw_resamples(25, 6)
    found = pregen_intervals.sum_pregen_scores(material, ALL).drawn(weights)
    for name in set(SUMMED) - set(found):
        _, image, rest = name.split("_", 2)
        of = material.captions[rest] if image == "join" else material.images[f"{image}_{rest}"]
        assert np.isinf(of).any(), name
    for draw, counts in enumerate(weights.astype(int)):
        expected = oracle.scores(*_repeated(material, counts))
        for name, values in found.items():
            assert values[draw] == pytest.approx(expected[name], rel=1e-9), name


def test_the_highest_lowest_and_middle_follow_binomial_laws():
    """Of n images drawn anew, the k-th lowest is at most the j-th of all where at least k of the
    draws are: n draws, each with probability j / n.
    """
    for images in (7, 40):
        material = _material(images, 2)
        found = pregen_intervals.compute_pregen_intervals(material)
        for name, rank in (("max", images), ("min", 1), ("median", (images + 1) // 2)):
            values = np.sort(material.images["mean_pplx_none"])
            ranks = [rank, images // 2 + 1] if name == "median" else [rank]
            expected = [
                np.mean([values[_quantile(images, each, share)] for each in ranks])
                for share in (0.025, 0.975)
            ]
            assert found[f"{name}_mean_pplx_none"] == pytest.approx(expected)


def _quantile(images, rank, share):
    for place in range(images):
        p = (place + 1) / images
        terms = (
            math.comb(images, many) * p**many * (1 - p) ** (images - many)
            for many in range(rank, images + 1)
        )
        if sum(terms) >= share - 1e-12:
            return place
    raise AssertionError


@pytest.mark.parametrize("name", ["max_max_prob_none", "max_join_prob_none"])
def test_the_highest_of_all_captions_is_that_of_the_images(name):
    material = _material(30, 4)
    found = pregen_intervals.compute_pregen_intervals(material, [name])
    values = np.sort(material.images["max_prob_none"])
    assert found[name] == (values[_quantile(30, 30, 0.025)], values[-1])


@pytest.mark.parametrize("name", ["median_join_pplx_none", "median_join_normcount_filter0"])
def test_the_median_of_all_captions_is_as_sure_as_plain_resamples_say(name):
    material = _material(400, 5)
    each = material.captions[name.removeprefix("median_join_")]
    image_of = np.repeat(np.arange(400), np.diff(material.image_offsets))
    (draws,) = resamples.draw_resamples(400, 1000, seed=9)
    medians = [np.median(np.repeat(each, counts[image_of])) for counts in draws.astype(int)]
    low, high = np.quantile(medians, [0.025, 0.975])
    found = pregen_intervals.compute_pregen_intervals(material, [name])[name]
    assert found == pytest.approx((low, high), abs=0.2 * (high - low) + 1e-12)


def test_every_finite_score_is_inside_its_interval_and_no_other_has_one():
    material = _material(60, 6, hits=0.6, zeros=0.001)
    values = material.scores(ALL)
    found = pregen_intervals.compute_pregen_intervals(material)
    for name, (low, high) in found.items():
        assert low - 1e-12 <= values[name] <= high + 1e-12, name
    assert not any(math.isinf(values[name]) for name in found)
    spared = {name for name in ALL if name not in found and math.isfinite(values[name])}
    assert {name.split("_")[0] for name in spared} <= {"max", "min", "median", "geomean"}
    assert len(found) > 500


def test_what_is_the_same_for_all_images_is_known_for_sure():
    one = _material(1, 7)
    material = PregenColumns(*_repeated(one, [25]))
    values = material.scores(ALL)
    for name, (low, high) in pregen_intervals.compute_pregen_intervals(material).items():
        assert low == high == pytest.approx(values[name], rel=1e-12), name


def test_the_84_of_prefixes_have_the_intervals_of_columns():
    material = _material(50, 9)
    prefixes = []
    for start, stop in np.stack([material.caption_offsets[:-1], material.caption_offsets[1:]], 1):
        missed = np.flatnonzero(material.rank[start:stop])
        prefixes.append(missed[0] if len(missed) else stop - start)
    known = pregen.make_columns(np.array(prefixes), np.diff(material.caption_offsets))
    instant = PregenColumns(*known, material.image_offsets)
    found = pregen_intervals.compute_pregen_intervals(instant, pregen.INSTANT)
    assert len(found) == 84
    assert found == pregen_intervals.compute_pregen_intervals(material, pregen.INSTANT)


OF_TOKENS = ["corpus_perplexity", "bits_per_byte"]


def _sized(images, *shape, **shares):
    """The same, with some bytes for each image."""
    material = _material(images, *shape, **shares)
    return replace(material, image_bytes=np.random.default_rng(images).integers(9, 99, images))


def test_scores_of_all_tokens_have_the_intervals_of_plain_resamples_of_images():
    material = _sized(60, 10)
    drawn = {name: [] for name in OF_TOKENS}
    for weights in resamples.draw_resamples(60):
        for counts in weights.astype(int):
            logs, *_ = _repeated(material, counts)
            total = -math.fsum(map(float, logs))
            size = sum(many * each for many, each in zip(counts, material.image_bytes, strict=True))
            drawn["corpus_perplexity"].append(math.exp(total / len(logs)))
            drawn["bits_per_byte"].append(total / math.log(2) / size)
    found = pregen_intervals.compute_pregen_intervals(material, OF_TOKENS)
    assert found == {
        name: pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), rel=1e-9)
        for name, values in drawn.items()
    }


@pytest.mark.parametrize(("images", "zeros"), [(1, 0.0), (40, 0.05)])
def test_scores_of_all_tokens_have_no_interval_of_one_image_nor_where_infinite(images, zeros):
    material = _sized(images, 13, zeros=zeros)
    assert pregen_intervals.compute_pregen_intervals(material, OF_TOKENS) == {}


def test_scores_of_all_tokens_are_drawn_for_boards():
    assert list(pregen_intervals.pack_pregen_draws(_sized(30, 14), OF_TOKENS)) == OF_TOKENS
