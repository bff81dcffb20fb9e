"""MobileNetV2 against transformers' own, and against published features of real photos."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from helpers import image_encoders, tflite
from service.contract.errors import AssetRefused, UnusableCheckpoint
from service.contract.formats import encoder_header
from service.contract.formats.encoder_header import EncoderPreprocessing
from workers import tensor_files
from workers.inference import mobilenet_v2

DATA = Path(os.environ.get("PRESCORE_DATA", Path(__file__).parents[4] / "shared" / "data"))


def _transformers(arrays, padding):
    """Its MobileNetV2 with these weights; its normalisations do nothing but add the bias."""
    from transformers import MobileNetV2Config, MobileNetV2Model

    config = MobileNetV2Config(tf_padding=padding == "same", layer_norm_eps=1e-12)
    model = MobileNetV2Model(config).eval()
    state = {name: torch.zeros_like(value) for name, value in model.state_dict().items()}
    state |= {name: torch.ones_like(state[name]) for name in state if name.endswith("running_var")}
    ours = {name.removesuffix(".weight"): None for name in arrays if name.endswith(".weight")}
    theirs = ["conv_stem.first_conv", "conv_stem.conv_3x3", "conv_stem.reduce_1x1"]
    for place in range(16):
        theirs += [f"layer.{place}.{part}" for part in ("expand_1x1", "conv_3x3", "reduce_1x1")]
    for our, their in zip(ours, [*theirs, "conv_1x1"], strict=True):
        state[f"{their}.convolution.weight"] = torch.from_numpy(arrays[f"{our}.weight"])
        state[f"{their}.normalization.weight"] = torch.ones(len(arrays[f"{our}.bias"]))
        state[f"{their}.normalization.bias"] = torch.from_numpy(arrays[f"{our}.bias"])
    model.load_state_dict(state)
    return model


@pytest.mark.long
@pytest.mark.parametrize("padding", ["same", "symmetric"])
@pytest.mark.parametrize("sides", [(32, 32), (45, 31)])
def test_features_are_those_of_transformers(tmp_path, padding, sides):
    given = EncoderPreprocessing(
        stretched=sides, mean=(120.0, 110.0, 100.0), deviation=(60.0, 50.0, 40.0)
    )
    encoder = mobilenet_v2.read_image_encoder(
        image_encoders.write(tmp_path / "e.safetensors", padding=padding, given=given)
    )
    rng = np.random.default_rng(1)
    some = rng.integers(0, 256, (3, sides[1], sides[0], 3), np.uint8)
    model = _transformers(image_encoders.arrays(), padding)
    values = (some.astype(np.float64) - given.mean) / given.deviation
    with torch.inference_mode():
        expected = model(torch.from_numpy(values).float().permute(0, 3, 1, 2)).pooler_output
    found = encoder.features(some)
    assert found.std() > 0.1
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-3, atol=1e-4)


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
    found = mobilenet_v2.encode_pictures(
        encoder, "0", _bundle(tmp_path / "b", photos, names), names
    )
    assert found.undecoded == {}
    lengths = np.linalg.norm(found.rows, axis=1) * np.linalg.norm(expected, axis=1)
    cosines = (found.rows * expected).sum(1) / lengths
    assert cosines.min() > 0.99
    assert cosines.mean() > 0.997


def _bundle(path, photos, names):
    (path / "images").mkdir(parents=True)
    for name in names:
        (path / "images" / name).write_bytes((photos / name).read_bytes())
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
    folder = tmp_path / "b" / "images"
    folder.mkdir(parents=True)
    for place, image in enumerate(images):
        whole = image_encoders.photo(place)
        (folder / image).write_bytes(whole[: len(whole) // 2] if place == 2 else whole)
    found = mobilenet_v2.encode_pictures(encoder, "0", tmp_path / "b", images)
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
