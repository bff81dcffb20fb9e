"""Captioners that look at places, trained on made-up pictures with features of places."""

import numpy as np
import pytest

from service.contract.errors import InvalidSetting, UnusableDataset
from service.contract.formats import bundles
from workers.inference import decoding, features
from workers.lab import shapes, training, training_runs

NAMES = ("soft_attention", "adaptive_attention", "bottom_up_top_down", "transformer")


@pytest.fixture(scope="module", params=["grid", "regions"])
def made(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    shapes.make_shapes(folder, 160, places=request.param)
    return request.param, folder


def _prepared(folder, architecture, **sizes):
    return training_runs.prepare_training(
        folder,
        architecture=architecture,
        sizes={"size": 32, **sizes},
        at_least=2,
        splits=("train", "val"),
        device="cpu",
    )


def test_a_dataset_of_places_says_which(made):
    kind, folder = made
    header = bundles.read_features_header(folder)
    assert header.inputs == kind
    assert header.places == (9 if kind == "grid" else 5)
    rows = features.read_features(folder, header.ids, header.encoder, kind)[:]
    counts = (~np.isnan(rows).any(axis=2)).sum(axis=1)
    assert set(counts) == ({9} if kind == "grid" else {1, 2, 3, 4, 5})


def test_the_figures_stand_where_the_captions_say(tmp_path):
    """Without noise, the first figure's row or column is on the side that people tell."""
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        scene = shapes._scene(rng)
        cells = shapes._cells(scene, rng)
        places = {figure: at for at, figure in cells.items()}
        if scene.second is None or scene.first == scene.second:
            continue
        (row, column), (other_row, other_column) = places[scene.first], places[scene.second]
        told = {
            "above": row < other_row and column == other_column,
            "below": row > other_row and column == other_column,
            "beside": row == other_row and column != other_column,
        }
        assert told[scene.relation]
        seen.add(scene.relation)
    assert seen == set(shapes.RELATIONS)


def test_one_vector_an_image_is_what_it_was(tmp_path):
    shapes.make_shapes(tmp_path / "one", 16)
    header = bundles.read_features_header(tmp_path / "one")
    assert (header.inputs, header.size, header.encoder) == ("features", 29, shapes.ENCODER)


@pytest.mark.parametrize("architecture", NAMES)
def test_an_epoch_makes_any_of_them_better(tmp_path, architecture):
    shapes.make_shapes(tmp_path, 48, places="regions")
    run = _prepared(tmp_path, architecture)
    epochs = run.train(epochs=1, batch=8, seed=0)
    untrained, trained = (epoch.validation_perplexity for epoch in epochs)
    assert trained < 0.8 * untrained


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["grid", "regions"])
@pytest.mark.parametrize("architecture", NAMES)
def test_every_one_learns_to_say_what_it_sees(tmp_path, architecture, kind):
    shapes.make_shapes(tmp_path, 800, places=kind)
    run = _prepared(tmp_path, architecture, size=64)
    best = min(
        run.train(epochs=12, batch=None, seed=0), key=lambda each: each.validation_perplexity
    )
    assert best.validation_perplexity < 3.2
    captions = decoding.decode_captions(best.model, run.validation.features)
    items = bundles.read_split(tmp_path, "val")
    said = [decoding.detokenize_caption(best.model, caption) for caption in captions]
    right = [
        any(figure in text for figure in shapes.SHAPES if figure in item.references[0])
        for text, item in zip(said, items, strict=True)
    ]
    assert sum(right) > 0.6 * len(right)  # the best guess is in 36


def test_what_does_not_fit_is_refused_before_anything_is_trained(made, tmp_path):
    _, folder = made
    with pytest.raises(UnusableDataset, match=r"merge takes one vector of each image, and the"):
        _prepared(folder, "merge")
    shapes.make_shapes(tmp_path / "one", 16)
    with pytest.raises(UnusableDataset, match=r"transformer takes features .*--places grid"):
        _prepared(tmp_path / "one", "transformer")
    with pytest.raises(InvalidSetting, match=r"--cell: transformer has none"):
        _prepared(folder, "transformer", cell="gru")
    with pytest.raises(InvalidSetting, match=r"--heads: expected a size that 5 heads divide"):
        _prepared(folder, "transformer", heads=5)
    with pytest.raises(InvalidSetting, match=r"--places: expected grid or regions, found 'rings'"):
        shapes.make_shapes(tmp_path / "rings", 16, places="rings")


def test_every_architecture_has_a_recipe():
    assert set(training.RECIPES) == set(training_runs.ARCHITECTURES)
