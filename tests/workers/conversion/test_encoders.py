"""MobileNetV2 of transformers and of torchvision become the same network in our form: of pictures
with an even and an odd side, and with both kinds of padding.
"""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from typer.testing import CliRunner

from service.contract.errors import RequestRefused
from workers.cli.convert import convert
from workers.conversion import encoders
from workers.inference import mobilenet_v2

pytestmark = pytest.mark.long


def _model(padding, epsilon):
    """Of transformers, with random normalisations."""
    from transformers import MobileNetV2Config, MobileNetV2Model

    torch.manual_seed(0)
    config = MobileNetV2Config(tf_padding=padding == "same", layer_norm_eps=epsilon)
    model = MobileNetV2Model(config).eval()
    with torch.no_grad():
        for name, value in model.state_dict().items():
            if name.endswith("convolution.weight"):  # values keep their size from layer to layer
                value.normal_(0.0, (2 / value[0].numel()) ** 0.5)
            elif name.endswith("running_var"):
                value.uniform_(0.001, 0.02)  # so small that what is added to it matters
            elif "normalization" in name and value.is_floating_point():
                value.normal_(0.1 if name.endswith("weight") else 0.0, 0.02)
    return model


def _torchvision(state):
    """The same tensors by torchvision's names, by its source (models/mobilenetv2.py)."""
    modules = [("conv_stem.first_conv", "features.0.0", "features.0.1")]
    modules += [("conv_stem.conv_3x3", "features.1.conv.0.0", "features.1.conv.0.1")]
    modules += [("conv_stem.reduce_1x1", "features.1.conv.1", "features.1.conv.2")]
    for place in range(16):
        at, theirs = f"features.{place + 2}.conv", f"layer.{place}"
        modules += [(f"{theirs}.expand_1x1", f"{at}.0.0", f"{at}.0.1")]
        modules += [(f"{theirs}.conv_3x3", f"{at}.1.0", f"{at}.1.1")]
        modules += [(f"{theirs}.reduce_1x1", f"{at}.2", f"{at}.3")]
    modules += [("conv_1x1", "features.18.0", "features.18.1")]
    found = {"classifier.1.weight": torch.zeros(10, 1280)}
    for theirs, convolution, normalisation in modules:
        for name, value in state.items():
            if name.startswith(f"{theirs}.convolution."):
                found[convolution + name.removeprefix(f"{theirs}.convolution")] = value
            if name.startswith(f"{theirs}.normalization."):
                found[normalisation + name.removeprefix(f"{theirs}.normalization")] = value
    assert len(found) == len(state) + 1
    return found


@pytest.mark.parametrize("library", ["transformers", "torchvision"])
def test_an_encoder_computes_what_the_model_computed(tmp_path, library):
    padding, epsilon = ("same", 1e-3) if library == "transformers" else ("symmetric", 1e-5)
    model = _model(padding, epsilon)
    state = model.state_dict()
    source, out = tmp_path / "model.safetensors", tmp_path / "encoder.safetensors"
    if library == "transformers":
        state = {f"mobilenet_v2.{name}": value for name, value in state.items()}
    else:
        state = _torchvision(state)
    save_file({name: value.contiguous() for name, value in state.items()}, source)
    told = CliRunner().invoke(convert, ["encoder", str(source), "--out", str(out), "--name", "m"])
    assert told.exit_code == 0, told.output
    assert "m (sha256:" in told.output.replace("\n", "")
    encoder = mobilenet_v2.read_image_encoder(out)
    given = encoder.header.preprocessing
    assert (encoder.fit.shorter, encoder.fit.cropped) == (256, (224, 224))
    some = np.random.default_rng(0).integers(0, 256, (3, 64, 45, 3), np.uint8)
    values = (some.astype(np.float64) - given.mean) / given.deviation
    with torch.inference_mode():
        expected = model(torch.from_numpy(values).float().permute(0, 3, 1, 2)).pooler_output
    assert expected.std(dim=0).mean() > 0.1  # of one feature, from picture to picture
    np.testing.assert_allclose(encoder.features(some), expected.numpy(), rtol=1e-3, atol=1e-3)


def test_what_is_no_mobilenet_is_refused(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(RequestRefused, match="expected the tensors of a MobileNetV2"):
        encoders.write_image_encoder(out, {"conv.weight": np.zeros((2, 2, 3, 3))}, "m")
    part = {"features.0.0.weight": np.zeros((32, 3, 3, 3))}
    with pytest.raises(RequestRefused, match=r"features\.0\.1\.weight"):
        encoders.write_image_encoder(out, part, "m")
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"\x1c\0\0\0TFL3" + bytes(100), "a TensorFlow Lite model"),
        (b"", "an empty file"),
    ],
)
def test_another_file_is_told_what_an_encoder_is_made_of(tmp_path, content, found):
    (tmp_path / "given").write_bytes(content)
    asked = ["encoder", str(tmp_path / "given"), "--out", str(tmp_path / "out")]
    told = CliRunner().invoke(convert, asked)
    assert told.exit_code == 2
    assert "expected the state dict of a MobileNetV2 of width 1" in told.stderr
    assert "torchvision" in told.stderr
    assert told.stderr.endswith(f"(deploy/guide/datasets.md), found {found}\n")
    assert "checkpoint" not in told.stderr
