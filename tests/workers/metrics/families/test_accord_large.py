"""The metric `accord_large`. Oracles: BERTScore's definition (tests/oracles), and cosines of
sentences in loops. With the real encoder, what every learned metric has to do.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import prescore
from helpers import encoders, monotonicity
from helpers.builders import captions_with_references
from oracles import bertscore as oracle
from service.contract import assets
from service.contract.assets import AssetFolders
from service.contract.errors import MetricFailed, MetricUnavailable
from service.contract.formats import bundles, digests
from service.contract.formats.bundles import BundleItem
from workers.metrics import postgen, references
from workers.metrics.accord import caption_features, large_model, model
from workers.metrics.families import accord_large, bertscore
from workers.metrics.families.accord_large import NAMES, WEIGHTED
from workers.metrics.family import ScoringInput
from workers.metrics.java.jvm import Jvm
from workers.metrics.vectors import text_encoder

JVM = Jvm()  # never asked


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return encoders.make(tmp_path_factory.mktemp("model"), uneven=True)


@pytest.fixture(scope="module")
def small(folder):
    return text_encoder.read_encoder(folder)


@pytest.fixture
def fitting(small, monkeypatch):
    """The shipped weights, as if they were learned by the small encoder."""
    found = replace(large_model.load_shipped_large_model(), encoder=small.name)
    monkeypatch.setattr(large_model, "load_shipped_large_model", lambda: found)
    return found


def _task(reader, captions, people, **options):
    """Captions, each with its own references."""
    prepared = references.prepare_references(people, "none", JVM)
    tools = {"encoder": reader, **options.pop("tools", {})}
    given = {"tokenizer": "none", "others": postgen.score_family} | options
    return ScoringInput(captions, np.arange(len(captions)), prepared, JVM, tools=tools, **given)


def _scores(*task, **options):
    return postgen.score_family("accord_large", _task(*task, **options)).captions["accord_large"]


def _measured(*task, **options):
    given = bertscore.complete(_task(*task, **options))
    return accord_large.measure_features(given, model.load_shipped_accord())


def _sentence(reference, text):
    """The mean of vectors that were made one long; the model's own tokens count."""
    tokens = reference.tokens(text)
    mean = sum(vector / np.sqrt(vector @ vector) for _, vector in tokens) / len(tokens)
    says = any(not reference.is_special(token) for token, _ in tokens)
    return mean / np.sqrt(mean @ mean) if says else 0 * mean


def _precision(reference, caption, image):
    """The mean over a caption's words of the highest cosine to a word of any reference."""

    def words(text):
        return [
            v / np.sqrt(v @ v) for n, v in reference.tokens(text) if not reference.is_special(n)
        ]

    theirs = [vector for text in image for vector in words(text)]
    best = [max(float(vector @ other) for other in theirs) for vector in words(caption) if theirs]
    return np.mean(best) if best else 0.0


def test_features_are_the_sum_of_accord_and_follow_from_bertscores_definition(folder, small):
    captions, people = captions_with_references(encoders.WORDS, 12, 3)
    captions[3:6] = ["A  DOG runs!\n", "", " unheard "]
    people[7], people[8] = ["", "the dog"], [" "]
    task = _task(small, captions, people)
    shipped = model.load_shipped_accord()
    found = accord_large.measure_features(bertscore.complete(task), shipped)
    own = (
        caption_features.measure_features(task, shipped.language)
        @ shipped.weights
        / sum(shipped.weights)
    )
    np.testing.assert_allclose(found[:, 0], own, rtol=1e-12)
    reference = oracle.Model(folder, encoders.LAYERS)
    for got, caption, image in zip(found[:, 1:5], captions, people, strict=True):
        ours = _sentence(reference, caption)
        cosines = [float(ours @ _sentence(reference, text)) for text in image]
        each = [oracle.score(reference, caption, [text]) for text in image]
        recall = np.mean([recall for _, recall, _ in each])
        precision = _precision(reference, caption, image)
        expected = [precision, recall, max(cosines), np.mean(cosines)]
        np.testing.assert_allclose(got, np.clip(expected, 0, 1), rtol=0, atol=2e-6)
    assert not found[4].any()


def test_the_encoder_reads_what_was_written_and_the_rest_tokens(small, fitting):
    captions, people = ["a dog runs"], [["the dog runs"]]
    written = {"texts": ["A big dog runs!"], "people": [["The dog, running"]]}
    plain = _task(small, captions, people)
    both = replace(plain, tools={**plain.tools, **written})
    texts = _task(small, written["texts"], written["people"])
    found, of_tokens, of_texts = (
        accord_large.measure_features(bertscore.complete(task), model.load_shipped_accord())
        for task in (both, plain, texts)
    )
    np.testing.assert_array_equal(found[:, [0, 5]], of_tokens[:, [0, 5]])
    np.testing.assert_array_equal(found[:, 1:5], of_texts[:, 1:5])
    assert (found[:, 1:5] != of_tokens[:, 1:5]).any()
    how = f"refs:1|tok:none|model:{fitting.digest[:12]}|encoder:{small.name[:12]}"
    signed = [postgen.score_family("accord_large", each).signatures for each in (both, plain)]
    assert signed == [
        {"accord_large": f"accord_large|{how}|texts:{read}|v:4"} for read in ("written", "tokens")
    ]


def test_words_count_the_more_the_nearer_a_caption_is_and_what_is_enough_in_full(small, fitting):
    values = np.array(
        [[0.6, 0, 0, 0, 0, 1], [0.6, 0.4, 0.4, 0.4, 0.4, 1], [0.6, 0.9, 0.9, 0.9, 0.9, 1]]
    )
    near, enough = np.full(4, 0.8), np.array([0.8, 0.5, 0.4])
    found = accord_large.weigh_features(values, near, enough)
    np.testing.assert_allclose(found, [[0.3, 0, 0, 0], [0.45, 0.5, 0.8, 1], [0.6, 1, 1, 1]])
    values[:, 5] = 0.4  # half of what is no worse for a caption
    again = accord_large.weigh_features(values, near, enough)
    np.testing.assert_allclose(again, found * [0.5, 0.5, 1, 1])
    captions, people = ["a dog runs", "the cat sits"], [["the dog runs"], ["a cat sat"]]
    own = _measured(small, captions, people)
    expected = fitting(accord_large.weigh_features(own, fitting.near, fitting.enough))
    np.testing.assert_array_equal(_scores(small, captions, people), expected)


@pytest.mark.parametrize(
    ("caption", "people", "expected"),
    [
        ("a dog runs and a dog sits", ["the dog"], 1 - 1 / 6),  # "a dog" is said again
        ("a dog runs and a dog sits", ["a dog and a dog", "a"], 1),
        ("a dog runs and a dogs sits", ["a dog", "a dog"], 1 - 1 / 6),  # of two references once
        ("a a a a a", ["the dog"], 1 - 3 / 4),
        ("dog", ["the dog"], 1),
        ("", ["the dog"], 0),
    ],
)
def test_words_said_again_are_those_beyond_what_a_reference_says(small, caption, people, expected):
    found = _measured(small, [caption], [people])
    assert found[0, NAMES.index("unrepeated")] == pytest.approx(expected)


def test_no_score_falls_where_a_feature_rises_and_all_are_in_0_to_1():
    shipped = large_model.load_shipped_large_model()
    assert list(shipped.features) == list(WEIGHTED)
    assert shipped.weights.min() >= 0

    def scores(values):
        return shipped(
            accord_large.weigh_features(np.atleast_2d(values), shipped.near, shipped.enough)
        )

    monotonicity.check(scores, len(NAMES))


HOSTILE = ["", " ", "...", "🐕", "\0", "ä ö ü", "a" * 3000, "a man " * 500, "3\u00a01/2 cups"]


def test_features_of_whatever_captions_and_references_are_in_0_to_1(small):
    captions = [caption for caption in HOSTILE for _ in HOSTILE] + HOSTILE
    people = [[other] for _ in HOSTILE for other in HOSTILE] + [HOSTILE] * len(HOSTILE)
    found = _measured(small, captions, people)
    assert np.isfinite(found).all()
    assert found.min() >= 0
    assert found.max() <= 1


def test_its_tasks_read_what_was_written_and_share_embedded_references_with_bertscore(
    tmp_path, folder, small, fitting, monkeypatch
):
    sha256 = digests.measure_file(folder).sha256
    pinned = replace(assets.ASSETS["minilm"], sha256=sha256)
    monkeypatch.setitem(assets.ASSETS, "minilm", pinned)
    places = AssetFolders(tmp_path)
    shutil.copytree(folder, places.own / pinned.names[0])
    captions = ["A  big DOG runs!", "the cat"]
    people = [("The dog runs on grass.", "a Dog"), ("A cat sits",)]
    images = ["1.jpg", "2.jpg"]
    items = (BundleItem(image, "test", each) for image, each in zip(images, people, strict=True))
    bundles.write_bundle_folder(tmp_path / "data", items)
    embedded = []
    prepare = bertscore.prepare
    monkeypatch.setattr(
        bertscore, "prepare", lambda *given, **how: embedded.append(1) or prepare(*given, **how)
    )
    said = dict(zip(images, captions, strict=True))
    asked = {"captions": said, "postgen": ["bertscore", "accord_large"], "tokenizer": "none"}
    with prescore.Client(here=tmp_path) as client:
        client.add_dataset("d", tmp_path / "data")
        run = client.wait(client.submit("d/test", **asked).id)
        got = [row.scores["accord_large"] for row in client.captions(run.id)]
    assert embedded == [1]
    written = {"texts": captions, "people": people}
    expected = _scores(small, captions, people, tools=written)
    np.testing.assert_allclose(got, expected, atol=1e-6)
    assert run.scores["accord_large"].signature.endswith("|texts:written|v:4")
    assert 0 < run.scores["accord_large"].value < 1


def test_another_encoder_or_none_is_unavailable(small):
    expected = large_model.load_shipped_large_model().encoder
    told = f"{expected[:12]}…, layer 6.*found another model .*{small.name[:12]}…, layer 3"
    with pytest.raises(MetricUnavailable, match=told):
        _scores(small, ["a dog"], [["a dog"]])
    with pytest.raises(MetricUnavailable, match="needs all-MiniLM-L6-v2, and was given no model"):
        _scores(None, ["a dog"], [["a dog"]])


@pytest.mark.long  # a real model; the same of the sum of `accord`: test_accord.py
def test_with_the_real_model_better_captions_score_more_and_the_scores_are_spread(minilm):
    people = encoders.PEOPLE[0]
    captions = [people[0], encoders.SAID[0], encoders.SAID[1], ""]
    found = _scores(text_encoder.read_encoder(minilm), captions, [people] * len(captions))
    reference, right, other, empty = found
    assert 1 >= reference > right > other > empty == 0
    assert right - other > 0.2


def _written(path, **changed):
    large_model.write_large_model(path, replace(large_model.load_shipped_large_model(), **changed))
    return path


def test_weights_are_written_and_read(tmp_path):
    again = _written(tmp_path / "again.safetensors")
    assert again.read_bytes() == large_model.SHIPPED.read_bytes()


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"weights": -np.ones(4)}, "expected 4 weights, none of them negative"),
        ({"enough": np.zeros(3)}, "expected 3 enough, all above 0"),
        ({"near": np.ones(1)}, "expected 4 near, none of them negative"),
    ],
)
def test_weights_that_contradict_themselves_are_refused(tmp_path, changed, complaint):
    path = _written(tmp_path / "weights.safetensors", **changed)
    with pytest.raises(MetricFailed, match=complaint):
        large_model.read_large_model(path, model.load_shipped_accord())


def test_weights_beside_another_model_are_refused():
    other = replace(model.load_shipped_accord(), digest="0" * 64)
    with pytest.raises(MetricFailed, match="beside the model of accord 000000000000…, found those"):
        large_model.read_large_model(large_model.SHIPPED, other)


@pytest.mark.parametrize(
    ("kind", "load", "names", "most"),
    [
        (model, model.load_shipped_accord, caption_features.NAMES, 2_000_000),
        (large_model, large_model.load_shipped_large_model, WEIGHTED, 10_000),
    ],
    ids=["accord", "accord_large"],
)
def test_the_card_is_about_these_very_files(kind, load, names, most):
    card = (Path(model.__file__).parent / "CARD.md").read_text("utf-8")
    assert load().digest in card
    for name, weight in zip(names, load().weights, strict=True):
        assert f"| {name} | {weight:.2f} |" in card
    assert kind.SHIPPED.stat().st_size < most
