"""Features of a dataset's pictures, as tasks compute them."""

import pytest

from helpers import image_encoders
from service.contract.assets import AssetFolders
from service.contract.errors import CheckpointMismatch, MetricUnavailable
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from service.contract.formats.checkpoint_header import FeatureEncoder
from workers.inference import features
from workers.jobs import pictures
from workers.jobs.request import JobRequest
from workers.jobs.toolbox import Toolbox
from workers.offline import assets
from workers.progress import ignore_progress

pytest.importorskip("PIL", reason="pictures are decoded by Pillow")
pytestmark = [pytest.mark.processes, pytest.mark.long]

IMAGES = [f"{place}.jpg" for place in range(6)]


@pytest.fixture
def toolbox(tmp_path):
    places = AssetFolders(tmp_path / "home")
    path = image_encoders.write(tmp_path / "e.safetensors")
    assets.add_asset("image-encoder", path, places)
    return Toolbox("cpu", places)


@pytest.fixture
def sha256(toolbox):
    return assets.locate_asset("image-encoder", toolbox.places).sha256


@pytest.fixture
def bundle(tmp_path):
    """Six pictures of the split `test`, two of which are cut off, between others of `train`."""
    folder = tmp_path / "bundle"
    (folder / "images").mkdir(parents=True)
    items = []
    for place, image in enumerate(IMAGES):
        items += [
            BundleItem(f"other{image}", "train", ("a b",)),
            BundleItem(image, "test", ("a b",)),
        ]
        content = image_encoders.photo(place)
        cut = content[:-200] if place in (1, 4) else content
        (folder / "images" / image).write_bytes(cut)
    bundles.write_bundle_folder(folder, items)
    return folder


def _done(toolbox, bundle, sha256, path, parts=(), **parameters):
    asked = {"split": "test", "encoder": sha256, **parameters}
    request = JobRequest({"dataset": bundle}, {}, parts, asked)
    result = pictures.encode_pictures(request, toolbox, ignore_progress)
    result.write(path)
    return result.summary


def test_parts_joined_are_the_whole_and_undecoded_pictures_are_counted_and_named(
    toolbox, bundle, sha256, tmp_path
):
    whole, parts = tmp_path / "whole", [tmp_path / "a", tmp_path / "b"]
    seen = _done(toolbox, bundle, sha256, whole)
    for path, images in zip(parts, ([0, 4], [4, 6]), strict=True):
        _done(toolbox, bundle, sha256, path, images=images)
    joined = _done(toolbox, bundle, sha256, tmp_path / "joined", parts=parts)
    assert (tmp_path / "joined").read_bytes() == whole.read_bytes()
    assert joined == seen
    assert (seen.tried, seen.undecoded) == (6, 2)
    assert [each.image for each in seen.unseen] == ["1.jpg", "4.jpg"]
    assert all("truncated" in each.reason for each in seen.unseen)
    other = FeatureEncoder(name="random 1", digest="x")
    with pytest.raises(CheckpointMismatch, match="random 0"):
        features.read_computed_features(whole, ["0.jpg"], other)


def test_an_encoder_that_is_another_one_on_this_machine_is_not_used(toolbox, bundle, tmp_path):
    with pytest.raises(MetricUnavailable, match="SHA-256 000000000000…, found"):
        _done(toolbox, bundle, "0" * 64, tmp_path / "x")
