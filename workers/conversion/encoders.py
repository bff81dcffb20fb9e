"""Image encoders, made of the weights of a MobileNetV2 by transformers or torchvision."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import RequestRefused
from service.contract.formats import encoder_header
from service.contract.formats.encoder_header import EncoderHeader, EncoderPreprocessing, Padding
from workers import files, tensor_files

Arrays = Mapping[str, NDArray[Any]]
# What an encoder is made of, for whoever gives another file.
SOURCE = (
    "the state dict of a MobileNetV2 of width 1, by transformers or torchvision: a safetensors "
    "file, or what torch.save(model.state_dict(), path) writes (deploy/guide/datasets.md)"
)
_HALF = (127.5,) * 3


@dataclass(frozen=True)
class _Layout:
    """Names of a library's layers, the number that it adds to a variance, and its usual
    preprocessing.
    """

    first: str  # a tensor by which it is known
    epsilon: float
    padding: Padding
    preprocessing: EncoderPreprocessing


_TRANSFORMERS = _Layout(
    "conv_stem.first_conv.convolution.weight",
    1e-3,
    "same",
    EncoderPreprocessing(shorter=256, cropped=(224, 224), mean=_HALF, deviation=_HALF),
)
_TORCHVISION = _Layout(
    "features.0.0.weight",
    1e-5,
    "symmetric",
    EncoderPreprocessing(
        shorter=256,
        cropped=(224, 224),
        mean=(123.675, 116.28, 103.53),
        deviation=(58.395, 57.12, 57.375),
    ),
)


def write_image_encoder(
    path: Path, arrays: Arrays, name: str, preprocessing: EncoderPreprocessing | None = None
) -> EncoderHeader:
    """Write the encoder. Raises RequestRefused where the tensors are not those of a MobileNetV2 of
    width 1; its classifier is left out.
    """
    prefix, layout = _found(arrays)
    layers = _of_transformers() if layout is _TRANSFORMERS else _of_torchvision()
    tensors: dict[str, NDArray[np.float32]] = {}
    for ours, convolution, normalisation in layers:
        weight, bias = _folded(arrays, prefix + convolution, prefix + normalisation, layout.epsilon)
        tensors |= {f"{ours}.weight": weight, f"{ours}.bias": bias}
    given = preprocessing or layout.preprocessing
    metadata = encoder_header.dump_encoder_metadata(name, layout.padding, given)

    def save(partial: Path) -> EncoderHeader:
        tensor_files.write_tensors_into(partial, tensors, metadata)
        return encoder_header.read_encoder_header(partial)

    return files.write_atomically(path, save)


def _found(arrays: Arrays) -> tuple[str, _Layout]:
    for layout in (_TRANSFORMERS, _TORCHVISION):
        for name in arrays:
            if name.endswith(layout.first):
                return name.removesuffix(layout.first), layout
    raise RequestRefused(
        "expected the tensors of a MobileNetV2 as transformers or torchvision name them, found "
        f"neither {_TRANSFORMERS.first} nor {_TORCHVISION.first}: deploy/guide/datasets.md"
    )


def _of_transformers() -> Iterator[tuple[str, str, str]]:
    """Our layer, their convolution and their normalisation."""
    named = [("stem", "conv_stem.first_conv"), ("blocks.0.depthwise", "conv_stem.conv_3x3")]
    named += [("blocks.0.project", "conv_stem.reduce_1x1")]
    parts = ("expand", "expand_1x1"), ("depthwise", "conv_3x3"), ("project", "reduce_1x1")
    named += [
        (f"blocks.{place + 1}.{ours}", f"layer.{place}.{theirs}")
        for place in range(16)
        for ours, theirs in parts
    ]
    for ours, theirs in (*named, ("head", "conv_1x1")):
        yield ours, f"{theirs}.convolution", f"{theirs}.normalization"


def _of_torchvision() -> Iterator[tuple[str, str, str]]:
    yield "stem", "features.0.0", "features.0.1"
    for place, block in enumerate(encoder_header.list_mobilenet_blocks()):
        within = f"features.{place + 1}.conv"
        parts = ["expand", "depthwise"] if block.inner != block.given else ["depthwise"]
        for at, part in enumerate(parts):
            yield f"blocks.{place}.{part}", f"{within}.{at}.0", f"{within}.{at}.1"
        at = len(parts)
        yield f"blocks.{place}.project", f"{within}.{at}", f"{within}.{at + 1}"
    yield "head", "features.18.0", "features.18.1"


def _folded(
    arrays: Arrays, convolution: str, normalisation: str, epsilon: float
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """A convolution's weight and bias with its normalisation multiplied in."""
    weight = _tensor(arrays, f"{convolution}.weight")
    gain, shift, mean, variance = (
        _tensor(arrays, f"{normalisation}.{name}")
        for name in ("weight", "bias", "running_mean", "running_var")
    )
    if weight.ndim != 4 or any(len(weight) != each.size for each in (gain, shift, mean, variance)):
        raise RequestRefused(f"{convolution} and {normalisation} do not fit together")
    factor = gain / np.sqrt(variance + epsilon)
    scaled = weight * factor[:, None, None, None]
    return scaled.astype(np.float32), (shift - mean * factor).astype(np.float32)


def _tensor(arrays: Arrays, name: str) -> NDArray[np.float64]:
    if name not in arrays:
        raise RequestRefused(f"expected the tensor {name} of a MobileNetV2, found none")
    return np.asarray(arrays[name], np.float64)
