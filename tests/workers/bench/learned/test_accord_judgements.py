"""Models of accord from judgements. Oracles: preferences by loops; parts by the photos' names."""

from dataclasses import replace

import numpy as np
import pytest

from helpers import synthetic_captions
from service.contract.errors import MetricFailed, RequestRefused
from workers.bench.judgements import JudgedPair, Judgements, RatedCaption
from workers.bench.judging import scoring
from workers.bench.judging.verdict import judge_metrics
from workers.bench.learned import accord_judgements
from workers.bench.learned.accord_training import AccordTrainingOptions
from workers.bench.learned.training_sets import identify_photo
from workers.metrics import postgen
from workers.metrics.accord import model
from workers.metrics.java.jvm import Jvm

JVM = Jvm()  # never asked
ASKED = AccordTrainingOptions(JVM, postgen.score_family, "none", inputs={"judgements": "sha256:0"})


def _judgements(turned=frozenset()):
    """Of 80 photos, half of them under other names in pairs: a person's caption above another
    image's. Where a photo is among those `turned`, people preferred the other.
    """
    images = synthetic_captions.images(80)
    rated, pairs = [], []
    for at, (own, *others) in enumerate(images):
        wrong = images[(at + 7) % 80][0]
        photo = f"{at}"
        good, poor = ((4.0, 3.0), (1.0, 2.0))[:: -1 if photo in turned else 1]
        people = tuple(others)
        rated.append(RatedCaption(own, people, good, f"{at}_flickr8k.jpg"))
        rated.append(RatedCaption(wrong, people, poor, f"{at}_flickr8k.jpg"))
        if at % 2:
            told = "b" if photo in turned else "a"
            pairs.append(JudgedPair(people, own, wrong, told, image=f"{at}.jpg"))
    return Judgements(rated, pairs)


@pytest.fixture(scope="module")
def parts():
    return accord_judgements.split_judgements(_judgements(), seed=0)


@pytest.fixture(scope="module")
def learned():
    return accord_judgements.learn_from_judgements({}, _judgements(), ASKED)


def test_no_photo_is_in_both_parts_under_any_name(parts):
    photos = [
        {identify_photo(line.image) for line in (*part.rated, *part.pairs)}
        for part in (parts.learned, parts.test)
    ]
    assert [len(each) for each in photos] == [60, 20]
    assert not photos[0] & photos[1]
    assert [frozenset(each) for each in photos] == list(parts.photos)
    whole = _judgements()
    assert len(parts.learned.rated) + len(parts.test.rated) == len(whole.rated)
    assert len(parts.learned.pairs) + len(parts.test.pairs) == len(whole.pairs)


def test_lines_without_a_name_are_parted_by_their_references():
    rated = [replace(line, image=None) for line in _judgements().rated]
    found = accord_judgements.split_judgements(Judgements(rated), seed=0)
    sets = [{line.references for line in part.rated} for part in (found.learned, found.test)]
    assert not sets[0] & sets[1]
    assert len(found.photos[1]) == 20


def test_what_is_rated_higher_stands_above_what_is_rated_lower_of_the_same_photo():
    people = ("a dog runs", "the dog")
    lines = [(2.0, 3.0), (2.5,), (4.0,), (1.0,)]  # the first two have the same mean
    one = [RatedCaption(f"a {n}", people, each, "1.jpg") for n, each in enumerate(lines)]
    other = [RatedCaption(f"a {n}", people, each, "2.jpg") for n, each in enumerate(lines[2:], 4)]
    pair = JudgedPair(people, "a b", "a c", "b", image="1_x.jpg")
    given = Judgements([*one, *other], [pair])
    texts = scoring.collect_captions(given)
    better, worse, photos = accord_judgements.find_preferences(given, texts, 0)
    found = {
        (texts.texts[a], texts.texts[b], p) for a, b, p in zip(better, worse, photos, strict=True)
    }
    expected = {("a c", "a b", "1")}
    for photo, rated in (("1", one), ("2", other)):
        for first in rated:
            for second in rated:
                if np.mean(first.ratings) > np.mean(second.ratings):
                    expected.add((first.candidate, second.candidate, photo))
    assert found == expected
    assert len(better) == len(expected)


def test_a_photo_with_many_ratings_has_some_pairs_of_them():
    rated = [RatedCaption(f"a {n}", ("a dog",), (float(n),), "1.jpg") for n in range(500)]
    better, _, _ = accord_judgements.find_preferences(
        Judgements(rated), scoring.collect_captions(Judgements(rated)), 0
    )
    assert len(better) == 100


def test_nothing_of_the_test_is_learned_from(learned, parts):
    """Whatever people say of its photos, the weights are the same; of others, they are not."""
    turned = accord_judgements.learn_from_judgements(
        {}, _judgements(frozenset(sorted(parts.photos[1])[:15])), ASKED
    )
    np.testing.assert_array_equal(turned.weights, learned.weights)
    assert turned.about["agreement"] != learned.about["agreement"]
    other = accord_judgements.learn_from_judgements(
        {}, _judgements(frozenset(sorted(parts.photos[0])[:15])), ASKED
    )
    assert (other.weights != learned.weights).any()


def test_agreement_stands_beside_that_of_the_shipped_model_and_cider_d(learned, parts):
    agreement = learned.about["agreement"]
    assert (agreement["photos"], agreement["rated"]) == (20, len(parts.test.rated))
    assert set(agreement["metrics"]) == {"this model", "accord", "cider_d"}
    assert (learned.weights >= 0).all()
    assert agreement["metrics"]["this model"]["right"] > 0.9
    given = scoring.collect_captions(parts.test)
    scored = scoring.score_captions(given, ["accord", "cider_d"], "none", JVM)
    found = judge_metrics(parts.test, given, scored, "flat")
    for name in ("accord", "cider_d"):
        row = agreement["metrics"][name]
        assert row["kendall_c"] == found["rated"][name]["kendall_c"]
        assert row["kendall_c_interval"] == found["rated"][name]["intervals"]["kendall_c"]
        assert row["right"] == found["pairs"][name]["all"]["half"]


def test_the_words_are_those_of_the_dataset_less_the_photos_of_the_test(parts):
    people = {f"{at}.jpg": said for at, said in enumerate(synthetic_captions.images(80))}
    tested = next(iter(parts.test.rated))
    people["under another name.jpg"] = ("something else", tested.references[0])
    found = accord_judgements.learn_from_judgements(people, _judgements(), ASKED)
    assert found.about["images"] == found.language.frequencies.images < 61
    assert found.language.words != model.load_shipped_accord().language.words


def test_few_photos_and_equal_ratings_are_refused():
    whole = _judgements()
    with pytest.raises(RequestRefused, match="at least 40 photos, found 10"):
        accord_judgements.learn_from_judgements({}, Judgements(whole.rated[:20]), ASKED)
    equal = [replace(line, ratings=(1.0,)) for line in whole.rated]
    with pytest.raises(RequestRefused, match="people judged differently, found none"):
        accord_judgements.learn_from_judgements({}, Judgements(equal), ASKED)


def test_people_who_prefer_what_is_wrong_make_no_metric():
    everything = frozenset(map(str, range(80)))
    with pytest.raises(MetricFailed, match="no feature is higher"):
        accord_judgements.learn_from_judgements({}, _judgements(everything), ASKED)
