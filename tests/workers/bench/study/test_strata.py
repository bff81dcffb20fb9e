"""Oracles: the pre-gen definitions by plain loops, pycocoevalcap run on the stratum's captions."""

import numpy as np
import pytest

from helpers.builders import captions_with_references
from oracles import coco_scorers
from oracles import pregen as oracle
from service.contract.errors import MetricFailed
from workers.bench.study import rows as tensors
from workers.bench.study import strata
from workers.bench.study.strata import StratifiedModel
from workers.inference.columns import ProbabilityColumns
from workers.metrics import postgen, references
from workers.metrics.java.jvm import Jvm

IMAGES = 23
WORDS = ["a", "the", "man", "woman", "dog", "runs", "sits", "on", "grass", "red"]
METRICS = ("bleu_1", "bleu_4", "rouge_l", "cider_d")


@pytest.fixture(scope="module")
def said():
    return captions_with_references(WORDS, IMAGES, 0)


@pytest.fixture(scope="module")
def columns():
    rng = np.random.default_rng(0)
    captions = rng.integers(1, 4, IMAGES)
    lengths = rng.integers(1, 6, captions.sum())
    tokens = int(lengths.sum())
    return ProbabilityColumns(
        logp=-rng.exponential(size=tokens).astype(np.float32),
        rank=rng.integers(0, 2, tokens).astype(np.uint16),
        caption_offsets=np.concatenate([[0], np.cumsum(lengths)]),
        image_offsets=np.concatenate([[0], np.cumsum(captions)]),
        top_ids=np.zeros((tokens, 1), np.uint16),
        top_logp=np.zeros((tokens, 1), np.float32),
    )


@pytest.fixture(scope="module")
def scores(said):
    return {family: _score(family, *said) for family in ("cider_d", "bleu", "rouge_l")}


def _score(family, captions, people, **how):
    prepared = references.prepare_references(people, "none", Jvm())
    return postgen.score_tokens(family, captions, prepared, np.arange(len(captions)), Jvm(), **how)


def _expected_strata(own):
    """The images of each, by the definition: (how many, which) -> places."""
    order = sorted(range(IMAGES), key=lambda image: own[image])
    return {
        (count, number): order[number * (IMAGES // count) : (number + 1) * (IMAGES // count)]
        for count in range(1, 6)
        for number in range(count)
    }


def _of(rows):
    return list(zip(rows.strata, rows.stratum, strict=True))


@pytest.fixture(scope="module")
def rows(columns, scores):
    """With the dataset's document frequencies."""
    return strata.make_stratum_rows(StratifiedModel(columns, scores), "tiny", "m")


def test_a_model_has_fifteen_rows_the_worst_images_first(rows):
    assert _of(rows) == list(_expected_strata(range(IMAGES)))
    assert (set(rows.datasets), set(rows.models), rows.idf) == ({"tiny"}, {"m"}, "dataset")
    for count in range(2, 6):
        own = [rows.postgen["cider_d"][at] for at, one in enumerate(_of(rows)) if one[0] == count]
        assert own == sorted(own)


def test_scores_of_a_stratum_are_those_of_its_images_and_ciders_is_their_mean(
    said, columns, scores, rows
):
    own = scores["cider_d"].captions["cider_d"]
    for at, images in enumerate(_expected_strata(own).values()):
        expected = oracle.scores(*_columns_of(columns, images))
        found = {name: column[at] for name, column in rows.pregen.items()}
        assert found == pytest.approx(expected, rel=1e-12)
        assert rows.postgen["cider_d"][at] == pytest.approx(np.mean(own[images]), rel=1e-12)
        package = _package(said, images)
        for name in ("bleu_1", "bleu_4", "rouge_l"):
            assert rows.postgen[name][at] == pytest.approx(package[name], rel=1e-9)


def _columns_of(columns, images):
    logp, rank, captions, counts = [], [], [0], [0]
    for image in images:
        first, last = columns.image_offsets[image : image + 2]
        for caption in range(first, last):
            tokens = slice(*columns.caption_offsets[caption : caption + 2])
            logp += columns.logp[tokens].tolist()
            rank += columns.rank[tokens].tolist()
            captions.append(len(logp))
        counts.append(len(captions) - 1)
    return logp, rank, captions, counts


def _package(said, images):
    captions, people = said
    chosen = [captions[image] for image in images], [people[image] for image in images]
    return coco_scorers.scores(*chosen, METRICS)


def test_with_the_stratums_idf_scores_are_those_of_its_captions_alone(said, columns, scores):
    captions, people = said
    prepared = references.prepare_references(people, "none", Jvm())

    def rescore(family, images):
        own = [captions[image] for image in images]
        return postgen.score_tokens(family, own, prepared, images, Jvm(), idf="subset").corpus

    rows = strata.make_stratum_rows(StratifiedModel(columns, scores, rescore), "tiny", "m")
    assert rows.idf == "stratum"
    own = scores["cider_d"].captions["cider_d"]
    for at, images in enumerate(_expected_strata(own).values()):
        for name, value in _package(said, images).items():
            assert rows.postgen[name][at] == pytest.approx(value, rel=1e-9, abs=1e-15)


def test_spider_is_half_of_spice_and_half_of_the_cider_that_was_asked_for(columns, scores):
    spice = np.linspace(0, 1, IMAGES)
    halves = {"spice": spice, "cider_d": scores["cider_d"].statistics["cider_d"]}
    of_spider = postgen.FamilyScores("spider", {}, {}, halves, {})
    model = StratifiedModel(columns, {**scores, "spider": of_spider}, lambda *_: {"cider_d": 0.25})
    rows = strata.make_stratum_rows(model, "tiny", "m")
    own = scores["cider_d"].captions["cider_d"]
    for at, images in enumerate(_expected_strata(own).values()):
        assert rows.postgen["spider"][at] == pytest.approx((np.mean(spice[images]) + 0.25) / 2)


def test_rows_come_back_from_their_file(rows, tmp_path):
    tensors.write_rows_file(tmp_path / "rows", rows)
    back = tensors.read_rows_file(tmp_path / "rows")
    for side in ("pregen", "postgen"):
        ours, theirs = getattr(rows, side), getattr(back, side)
        assert list(ours) == list(theirs)
        np.testing.assert_array_equal(list(ours.values()), list(theirs.values()))
    assert (_of(back), back.models, back.idf) == (_of(rows), rows.models, rows.idf)


def test_what_does_not_fit_together_is_refused(columns, scores):
    with pytest.raises(MetricFailed, match="expected scores by cider_d"):
        StratifiedModel(columns, {"bleu": scores["bleu"]})
    few = _score("cider_d", ["a dog"] * 4, [["a dog"]] * 4)
    with pytest.raises(MetricFailed, match=r"of one caption for each of 23 images, found \[4\]"):
        StratifiedModel(columns, {"cider_d": few})
    small = ProbabilityColumns(
        np.zeros(4, np.float32), np.zeros(4, np.uint16), np.arange(5), np.arange(5),
        np.zeros((4, 1), np.uint16), np.zeros((4, 1), np.float32),
    )  # fmt: skip
    with pytest.raises(MetricFailed, match="5 strata need as many images, found 4"):
        strata.make_stratum_rows(StratifiedModel(small, {"cider_d": few}), "tiny", "m")
