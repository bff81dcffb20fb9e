"""MobileNetV2 against published features of real photos; beside transformers' own:
tests/workers/conversion/test_encoders.py.
"""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers import image_encoders, tflite
from service.contract.errors import AssetRefused, UnusableCheckpoint
from service.contract.formats import encoder_header
from workers import tensor_files
from workers.inference import mobilenet_v2

DATA = Path(os.environ.get("PRESCORE_DATA", Path(__file__).parents[4] / "shared" / "data"))


@pytest.mark.long
@pytest.mark.processes
def test_features_of_photos_are_the_published_ones(tmp_path):
    """Those were computed with whole numbers of 8 bits: cosine .998 on average of the 1,000 test
    images of Flickr8k, at least .994; correlation .997, at least .991.
    """
    source, published = DATA / "cnn", DATA / "flickr8k" / "mobilenetv2_pool1280_uint8.npz"
    photos = DATA / "flickr8k" / "images224_test"
    if not (source.is_dir() and published.is_file() and photos.is_dir()):
        pytest.skip("no data")
    pytest.importorskip("PIL", reason="pictures are decoded by Pillow")
    tflite.convert(source / "mobilenet_v2_1.0_224_quant.tflite", tmp_path / "e.safetensors")
    encoder = mobilenet_v2.read_image_encoder(tmp_path / "e.safetensors")
    names = sorted(path.name for path in photos.iterdir())[:20]
    with np.load(published) as file:
        place = {name: at for at, name in enumerate(file["filenames"])}
        expected = file["q"][[place[name] for name in names]] * float(file["scale"])
    bundle = _bundle(tmp_path / "b", {name: (photos / name).read_bytes() for name in names})
    found = mobilenet_v2.encode_pictures(encoder, "0", bundle, names)
    assert found.undecoded == {}
    lengths = np.linalg.norm(found.rows, axis=1) * np.linalg.norm(expected, axis=1)
    cosines = (found.rows * expected).sum(1) / lengths
    assert cosines.min() > 0.99
    assert cosines.mean() > 0.997


def _bundle(path, pictures):
    (path / "images").mkdir(parents=True)
    for name, content in pictures.items():
        (path / "images" / name).write_bytes(content)
    return path


@pytest.mark.processes
@pytest.mark.usefixtures("two_threads")
def test_a_picture_that_cannot_be_decoded_has_no_features_and_moves_no_others(tmp_path):
    """An image's features depend on its picture alone, whatever stands beside it, and not on the
    number of threads, which is afterwards what it was.
    """
    pytest.importorskip("PIL", reason="pictures are decoded by Pillow")
    encoder = mobilenet_v2.read_image_encoder(image_encoders.write(tmp_path / "e.safetensors"))
    images = [f"{place}.jpg" for place in range(5)]
    pictures = {image: image_encoders.photo(place) for place, image in enumerate(images)}
    pictures["2.jpg"] = pictures["2.jpg"][: len(pictures["2.jpg"]) // 2]
    found = mobilenet_v2.encode_pictures(encoder, "0", _bundle(tmp_path / "b", pictures), images)
    with ThreadPoolExecutor(1) as later:  # a thread that starts takes what was set last, anywhere
        assert later.submit(torch.get_num_threads).result() == torch.get_num_threads() == 2
    torch.set_num_threads(1)
    assert list(found.undecoded) == ["2.jpg"]
    assert np.isnan(found.rows[2]).all()
    for place in (0, 1, 3, 4):
        alone = mobilenet_v2.encode_pictures(encoder, "0", tmp_path / "b", [images[place]])
        np.testing.assert_array_equal(found.rows[place], alone.rows[0])
    assert len({row.tobytes() for row in found.rows[[0, 1, 3, 4]]}) == 4


def _refused(path, arrays, metadata, error, *told):
    tensor_files.write_tensors(path, arrays, metadata)
    with pytest.raises(error) as caught:
        mobilenet_v2.read_image_encoder(path)
    for text in told:
        assert text in caught.value.detail


def test_a_file_that_is_no_encoder_is_refused_with_the_reason(tmp_path):
    arrays = image_encoders.arrays()
    right = encoder_header.dump_encoder_metadata("mine", "same", image_encoders.SMALL)
    path, zero = tmp_path / "e.safetensors", '"mean": [0,0,0]'
    for name, text, told in (
        ("architecture", "resnet", "expected 'mobilenet_v2', found 'resnet'"),
        ("prescore_encoder", "2", "expected '1'"),
        ("padding", "none", "expected 'same' or 'symmetric'"),
        ("name", "a\x1bb", "name: expected a text"),
        ("preprocessing", "{", "preprocessing"),
        ("preprocessing", f'{{{zero}, "deviation": [1,1,1]}}', "`stretched`, or `shorter`"),
        ("preprocessing", f'{{{zero}, "deviation": [1,0,1], "stretched": [8,8]}}', "other than 0"),
        ("preprocessing", f'{{{zero}, "deviation": [1,1,1], "stretched": [8,9999]}}', "to 2048"),
    ):
        _refused(path, arrays, {**right, name: text}, AssetRefused, told)
    odd = {**arrays, "head.bias": arrays["head.bias"][:-1]}
    _refused(path, odd, right, AssetRefused, "tensor head.bias", "[1280]", "[1279]")
    fewer = {name: array for name, array in arrays.items() if name != "stem.bias"}
    _refused(path, fewer, right, AssetRefused, "'stem.bias'")
    endless = {**arrays, "head.bias": np.full(1280, np.inf, np.float32)}
    _refused(path, endless, right, UnusableCheckpoint, "head.bias", "not finite")
    path.write_bytes(b"no such file")
    with pytest.raises(AssetRefused, match="is no encoder of pictures"):
        mobilenet_v2.read_image_encoder(path)
