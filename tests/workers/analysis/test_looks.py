"""Looks, one after the other: the last one says what the whole's score is."""

import numpy as np
import pytest

from helpers.builders import captions_with_references
from workers.analysis import image_order, looks, past_systems
from workers.analysis.looks import LookBatch
from workers.metrics import postgen, references

WORDS = ["a", "dog", "runs", "red", "ball", "two", "people", "in", "the", "park"]
FAMILIES = ("bleu", "cider_d")
IMAGES = 400


@pytest.fixture(scope="module")
def known():
    return image_order.standardise_columns(np.random.default_rng(2).normal(size=(IMAGES, 4)))


@pytest.fixture(scope="module")
def scored():
    captions, people = captions_with_references(WORDS, IMAGES, 0)
    refs = references.index_tokens(people, "none")

    def score(places):
        given = [captions[at] for at in places]
        return [postgen.score_tokens(f, given, refs, places, None) for f in FAMILIES]

    return score


@pytest.fixture(scope="module")
def drawn(known):
    return image_order.draw_image_order(known, 0)


def _looks(drawn, scored, ends):
    seen, begun = None, 0
    for end in ends:
        places = drawn[begun:end]
        seen, begun = looks.add_look(seen, [LookBatch(places, scored(places))]), end
    return seen


@pytest.mark.parametrize("seed", range(3))
def test_the_last_look_is_the_score_of_all(scored, known, seed):
    seen = _looks(image_order.draw_image_order(known, seed), scored, [128, 256, 384, IMAGES])
    said = looks.estimate_from_looks(seen, known, {})
    for each in scored(np.arange(IMAGES)):
        for name, value in each.corpus.items():
            assert said[name].score["value"] == value, (
                "to the last bit: it may be compared with itself"
            )
            assert said[name].score["interval"] == (
                said[name].score["value"],
                said[name].score["value"],
            )
            assert (said[name].score["images"], said[name].score["of"]) == (IMAGES, IMAGES)


@pytest.fixture(scope="module")
def past():
    captions = [captions_with_references(WORDS, IMAGES, seed)[0] for seed in range(1, 6)]
    refs = references.index_tokens(captions_with_references(WORDS, IMAGES, 0)[1], "none")
    everywhere = np.arange(IMAGES)
    systems = [postgen.score_tokens("cider_d", c, refs, everywhere, None) for c in captions]
    return past_systems.summarise_systems({"cider_d": [each.statistics for each in systems]})


def test_past_systems_are_told_and_the_last_look_is_still_the_score_of_all(scored, known, past):
    order = image_order.draw_image_order(past.hardness, 1, past.odds)
    seen = _looks(order, scored, [128, 256])
    said = looks.estimate_from_looks(seen, known, {}, past)
    assert (said["cider_d"].score["history"], said["bleu_4"].score["history"]) == (5, 0)
    assert said["cider_d"].score["interval"][0] < said["cider_d"].score["value"]
    whole = looks.estimate_from_looks(_looks(order, scored, [128, IMAGES]), known, {}, past)
    for each in scored(np.arange(IMAGES)):
        for name, value in each.corpus.items():
            assert whole[name].score["value"] == value
            assert whole[name].score["interval"] == (value, value)
            low, high = said[name].score["interval"]
            assert low < value < high


def test_signatures_are_those_of_the_whole(drawn, scored):
    whole = {name: at for each in scored(np.arange(IMAGES)) for name, at in each.signatures.items()}
    assert _looks(drawn, scored, [128, 256]).signatures == whole


def test_nothing_is_said_of_how_sure_a_few_images_are(drawn, scored, known):
    said = looks.estimate_from_looks(_looks(drawn, scored, [64]), known, {})
    assert said["cider_d"].score["interval"] is None
    assert looks.estimate_from_looks(_looks(drawn, scored, [64, 128]), known, {})["cider_d"].score[
        "interval"
    ]


def test_a_baseline_that_is_nearly_the_same_leaves_nearly_nothing_open(drawn, scored, known):
    past = {each.family: dict(each.statistics) for each in scored(np.arange(IMAGES))}
    past["cider_d"]["cider_d"] = past["cider_d"]["cider_d"] + 0.001
    seen = _looks(drawn, scored, [128])
    alone, beside = (looks.estimate_from_looks(seen, known, given) for given in ({}, past))
    for each in scored(np.arange(IMAGES)):
        for name, truth in each.corpus.items():
            assert beside[name].score["value"] == pytest.approx(truth, abs=1e-9)
            assert beside[name].score["interval"] == pytest.approx((truth, truth), abs=1e-8)
            low, high = beside[name].score["interval"]
            assert low < truth < high
            assert alone[name].score["interval"][1] - alone[name].score["interval"][0] > 100 * (
                high - low
            )


def test_a_difference_is_bounded_with_its_error_until_all_images_are_seen(drawn, scored, known):
    others = np.random.default_rng(3).permutation(IMAGES)
    past = {each.family: each.statistics for each in scored(np.arange(IMAGES))}
    past["cider_d"] = {"cider_d": past["cider_d"]["cider_d"][others]}
    seen = _looks(drawn, scored, [128, 256])
    one, five = (looks.estimate_from_looks(seen, known, past, tests=tests) for tests in (1, 5))
    mine = {each.family: each.statistics["cider_d"] for each in scored(np.arange(IMAGES))[1:]}
    differences = mine["cider_d"] - past["cider_d"]["cider_d"]
    truth, error = differences.mean(), differences.std(ddof=1) / np.sqrt(IMAGES)
    found, wider = one["cider_d"].difference, five["cider_d"].difference
    assert wider.low < found.low < truth < found.high < wider.high
    assert one["cider_d"].score == five["cider_d"].score
    low, high = one["cider_d"].score["interval"]
    assert (found.low, found.high) == pytest.approx(
        (low - past["cider_d"]["cider_d"].mean(), high - past["cider_d"]["cider_d"].mean())
    )
    part = differences[seen.images].std(ddof=1) / np.sqrt(IMAGES)
    assert error < found.error < 1.2 * error
    assert part < found.error < 1.2 * part
    assert one["bleu_1"].difference.error == 0.0, "of the same captions"
    assert looks.estimate_from_looks(seen, known, {})["cider_d"].difference is None
    few = looks.estimate_from_looks(_looks(drawn, scored, [64]), known, past)
    whole = looks.estimate_from_looks(_looks(drawn, scored, [128, IMAGES]), known, past)
    assert few["cider_d"].difference is whole["cider_d"].difference is None


def test_what_looks_gathered_is_read_as_it_was_written(drawn, scored, known, tmp_path):
    seen = _looks(drawn, scored, [128, 256])
    looks.write_looks(tmp_path / "look", seen)
    found = looks.read_looks(tmp_path / "look")
    read, written = (looks.estimate_from_looks(each, known, {}) for each in (found, seen))
    assert read.keys() == written.keys()
    for name, each in written.items():  # sums of the same numbers, in another layout of memory
        assert read[name].score["value"] == pytest.approx(each.score["value"], rel=1e-12)
        assert read[name].score["interval"] == pytest.approx(each.score["interval"], rel=1e-12)
    assert found.signatures == seen.signatures


def test_a_look_may_take_several_batches(drawn, scored, known):
    batches = [LookBatch(drawn[a:b], scored(drawn[a:b])) for a, b in ((0, 50), (50, 128))]
    found = looks.estimate_from_looks(looks.add_look(None, batches), known, {})
    assert found == looks.estimate_from_looks(_looks(drawn, scored, [128]), known, {})


def test_a_metric_that_failed_once_is_estimated_no_more(drawn, scored, known):
    second = LookBatch(drawn[128:256], scored(drawn[128:256])[:1])
    seen = looks.add_look(_looks(drawn, scored, [128]), [second])
    third = LookBatch(drawn[256:384], scored(drawn[256:384]))
    assert set(looks.estimate_from_looks(looks.add_look(seen, [third]), known, {})) == {
        *(f"bleu_{n}" for n in (1, 2, 3, 4))
    }
