import numpy as np
import pytest

from helpers.builders import ENCODER
from helpers.tars import packed
from service.contract.errors import CheckpointMismatch, UnusableDataset
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from service.contract.formats.checkpoint_header import FeatureEncoder
from workers.inference import features

IDS = ["a.jpg", "b.jpg", "ç.jpg"]
ROWS = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)


def _bundle(folder, rows=ROWS, counts=None, *, as_tar=False):
    bundles.write_bundle_folder(folder, [BundleItem(name, "test", ("a cat",)) for name in IDS])
    features.write_features(folder / "features.safetensors", IDS, rows, ENCODER, counts)
    if not as_tar:
        return folder
    path = folder.with_suffix(".tar")
    path.write_bytes(packed({each.name: each.read_bytes() for each in folder.iterdir()}))
    return path


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("as_tar", [False, True])
def test_rows_come_in_the_order_asked_for(tmp_path, dtype, as_tar):
    bundle = _bundle(tmp_path / "b", ROWS.astype(dtype), as_tar=as_tar)
    found = features.read_features(bundle, ["ç.jpg", "a.jpg", "ç.jpg"], ENCODER)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, ROWS.astype(dtype)[[2, 0, 2]].astype(np.float32))


def test_another_encoder_is_refused_with_both_names(tmp_path):
    with pytest.raises(CheckpointMismatch, match=r"vgg \(1\), the dataset has .* random \(none\)"):
        features.read_features(_bundle(tmp_path), IDS, FeatureEncoder(name="vgg", digest="1"))


def test_an_image_without_features_is_named(tmp_path):
    with pytest.raises(UnusableDataset, match=r"1 of 2 images .* 'd\.jpg'"):
        features.read_features(_bundle(tmp_path), ["a.jpg", "d.jpg"], ENCODER)


def test_features_that_are_not_numbers_are_found_by_image(tmp_path):
    rows = ROWS.copy()
    rows[1, 2] = np.nan
    with pytest.raises(UnusableDataset, match=r"'b\.jpg' are not finite"):
        features.read_features(_bundle(tmp_path, rows), IDS, ENCODER)


def test_a_bundle_of_captions_alone_says_what_it_lacks(tmp_path):
    bundles.write_bundle_folder(tmp_path, [BundleItem("a.jpg", "test", ("a cat",))])
    with pytest.raises(UnusableDataset, match=r"expected features\.safetensors"):
        features.read_features(tmp_path, ["a.jpg"], ENCODER)


PLACES = np.random.default_rng(1).normal(size=(3, 4, 2)).astype(np.float32)
COUNTS = np.array([4, 0, 2])


def _of_places(folder, rows=PLACES, counts=COUNTS, **how):
    return _bundle(folder, rows, counts, **how)


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("as_tar", [False, True])
@pytest.mark.parametrize("kind", ["grid", "regions"])
def test_places_come_in_the_order_asked_for_when_they_are_asked_for(tmp_path, dtype, as_tar, kind):
    rows = PLACES.astype(dtype)
    counts = COUNTS if kind == "regions" else None
    bundle = _of_places(tmp_path / "b", rows, counts, as_tar=as_tar)
    found = features.read_features(bundle, ["ç.jpg", "a.jpg", "b.jpg", "ç.jpg"], ENCODER, kind)
    expected = rows.astype(np.float32)[[2, 0, 1, 2]]
    if kind == "regions":
        expected[0, 2:] = expected[2] = expected[3, 2:] = np.nan
    assert (len(found), np.shape(found[:0])) == (4, (0, 4, 2))
    np.testing.assert_array_equal(found[:], expected)
    np.testing.assert_array_equal(found[1:3], expected[1:3])
    np.testing.assert_array_equal(found[np.array([3, 0])], expected[[3, 0]])


def test_what_stands_in_place_of_a_region_that_is_not_there_is_never_read(tmp_path):
    rows = PLACES.copy()
    rows[1], rows[2, 2:] = np.inf, np.nan
    found = features.read_features(_of_places(tmp_path, rows), IDS, ENCODER, "regions")[:]
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[2, :2], PLACES[2, :2])


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_region_that_is_there_has_finite_numbers(tmp_path, wrong):
    rows = PLACES.copy()
    rows[2, 1, 0] = wrong
    found = features.read_features(_of_places(tmp_path, rows), IDS, ENCODER, "regions")
    found[:2]
    with pytest.raises(UnusableDataset, match=r"'ç\.jpg' are not finite"):
        found[1:]


@pytest.mark.parametrize("asked", ["features", "grid"])
def test_features_of_another_kind_are_refused_with_both(tmp_path, asked):
    words = {"features": "one vector of each image", "grid": "features of a grid's places"}[asked]
    with pytest.raises(CheckpointMismatch, match=f"takes {words}, and the dataset has .* regions"):
        features.read_features(_of_places(tmp_path), IDS, ENCODER, asked)


def test_places_of_another_size_are_refused(tmp_path):
    found = features.read_features(_of_places(tmp_path), IDS, ENCODER, "regions")
    features.check_features_size(found, 2, "regions")
    with pytest.raises(CheckpointMismatch, match=r"size 5, the dataset's have shape \[3, 4, 2\]"):
        features.check_features_size(found, 5, "regions")
