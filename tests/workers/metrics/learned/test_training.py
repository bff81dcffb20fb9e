from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from helpers import interruptions
from service.contract.errors import RequestRefused, RunCanceled, UnknownMetric
from workers.bench.learned import nneval_fitting, nneval_training
from workers.bench.learned.nneval_fitting import FittingData, NetworkRecipe, WatchedCaptions
from workers.bench.learned.nneval_training import NNEvalMaterial
from workers.metrics import postgen, references
from workers.metrics.learned import nneval

FEATURES = ("bleu_1", "bleu_4", "cider_d")
QUICK = NetworkRecipe(hidden=(8,), learning_rate=0.01, beta=1e-4, epochs=8)


def _train(material, jvm, names=FEATURES, recipe=QUICK, **options):
    how = {"score": postgen.score_family, "tokenizer": "none"}
    return nneval_training.train_nneval(material, names, jvm, recipe, **how, **options)


@pytest.fixture(scope="module")
def outcome(world, unused_jvm):
    return _train(replace(world.material, rated=world.rated, inputs={"x": "sha256:0"}), unused_jvm)


def test_a_metric_that_is_trained_agrees_with_people(outcome):
    rows = {row.what: row for row in outcome.rows}
    assert rows["all features"].test > 0.5
    assert rows["all features"].stopping > 0.5


def test_what_was_done_is_recorded(outcome, world):
    about = outcome.model.about
    assert about["recipe"]["seed"] == 0
    assert about["training"]["captions"] == 6 * 54
    assert about["training"]["inputs"] == {"x": "sha256:0"}
    assert about["training"]["frequencies"]["images"] == 54
    assert about["held_out_loss"]["lowest"] <= about["held_out_loss"]["chosen"] < np.log(2)
    assert about["kendall_c"]["all features"][1] == pytest.approx(outcome.rows[0].test, abs=1e-4)


def test_a_model_scores_as_it_was_tested(outcome, world, unused_jvm, tmp_path):
    """Written, read, and asked for the ratings of the other half."""
    nneval.write_nneval(tmp_path / "model", outcome.model)
    read = nneval.read_nneval(tmp_path / "model")
    rated = world.rated
    sets = list(dict.fromkeys(line.references for line in rated))
    refs = references.prepare_references(sets, "none", unused_jvm)
    rows = np.array([sets.index(line.references) for line in rated])
    captions = [line.candidate for line in rated]
    found = postgen.score_tokens("nneval", captions, refs, rows, unused_jvm, model=read)
    scores = found.captions["nneval"]
    found = []
    for half in nneval_training._parts(replace(world.material, rated=rated), QUICK.seed)[1:3]:
        kept = np.array([line.image in half for line in rated])
        observed = np.repeat(scores[kept], 2)
        ratings = np.array([line.ratings for line in rated])[kept].ravel()
        found.append(stats.kendalltau(observed, ratings, variant="c").statistic)
    assert found == pytest.approx([outcome.rows[0].stopping, outcome.rows[0].test], abs=1e-12)


def test_without_ratings_held_out_images_stop_and_test(world, unused_jvm):
    found = _train(world.material, unused_jvm)
    assert found.model.about["stopped_by"] == "held-out images"
    assert found.model.about["training"]["images"] == 48
    assert found.rows[0].test > 0.3


def test_kendalls_tau_c_of_labels_is_twice_the_area_under_the_curve_less_1():
    rng = np.random.default_rng(0)
    human = np.arange(400) % 2 == 0
    scores = np.round(rng.normal(size=400) + human, 1)
    pairs = scores[human][:, None] - scores[~human][None, :]
    area = np.mean((pairs > 0) + (pairs == 0) / 2)
    watched = WatchedCaptions(np.zeros((400, 1)), np.arange(400), human.astype(float))
    assert watched.agreement(scores) == pytest.approx(2 * area - 1)
    assert watched.agreement(np.ones(400)) == 0.0


def test_a_feature_that_is_left_out_is_not_seen():
    """Of two features one says all, the other nothing."""
    rng = np.random.default_rng(0)
    human = rng.random(300) < 0.5
    values = np.stack([human + rng.normal(scale=0.1, size=300), rng.random(300)], axis=1)
    watched = WatchedCaptions(values, np.arange(300), human.astype(float))
    task = FittingData(("telling", "silent"), values, human, watched, watched, watched)
    single = {row.what: row.test for row in nneval_fitting.rate_single_features(task)}
    without = {row.what: row.test for row in nneval_fitting.rate_left_out_features(task, QUICK)}
    for telling, silent in (
        (single["telling"], single["silent"]),
        (without["without silent"], without["without telling"]),
    ):
        assert telling > 0.9
        assert abs(silent) < 0.3


@pytest.mark.parametrize("planted", ["1_of_flickr8k.jpg", "59_y.jpg"])
def test_a_photo_that_is_trained_on_and_rated_is_refused(world, unused_jvm, planted):
    first, *others = world.rated
    rated = [replace(first, image=planted), *others]
    with pytest.raises(RequestRefused, match=f"no photo in common, found 1.*'{planted}'"):
        _train(replace(world.material, rated=rated), unused_jvm)


def test_further_references_count_in_document_frequencies(world, unused_jvm):
    material = replace(world.material, rated=world.rated, further=[["a dog"], ["the dog"]])
    assert _train(material, unused_jvm).model.frequencies.images == 54 + 2


def test_progress_is_told_and_may_end_it(world, unused_jvm):
    told = []
    material = replace(world.material, rated=world.rated)
    _train(material, unused_jvm, report=lambda *at: told.append(at))
    assert ("training", 8, 8) in told
    assert ("without cider_d", 8, 8) in told
    assert ("features of training images", 324, 324) in told
    assert ("features of held-out images", 36, 36) in told
    with pytest.raises(RunCanceled):
        _train(material, unused_jvm, report=lambda _what, *at: interruptions.ends(*at))


def test_too_little_is_refused(world, unused_jvm):
    with pytest.raises(RequestRefused, match="expected training images, found none"):
        _train(NNEvalMaterial({}, [], world.rated), unused_jvm)
    with pytest.raises(UnknownMetric):
        _train(world.material, unused_jvm, names=["rouge_l"])
