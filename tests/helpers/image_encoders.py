"""Encoders of pictures with random weights, and pictures to encode."""

import io
from pathlib import Path

import numpy as np

from service.contract.formats import encoder_header
from service.contract.formats.encoder_header import EncoderPreprocessing, Padding
from workers import tensor_files

SMALL = EncoderPreprocessing(stretched=(32, 32), mean=(128.0,) * 3, deviation=(64.0,) * 3)


def arrays(seed: int = 0) -> dict[str, np.ndarray]:
    """Weights by which values keep their size from layer to layer."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, shape in encoder_header.list_encoder_shapes().items():
        scale = np.sqrt(2 / np.prod(shape[1:])) if name.endswith("weight") else 0.1
        found[name] = rng.normal(scale=scale, size=shape).astype(np.float32)
    return found


def write(
    path: Path, seed: int = 0, padding: Padding = "same", given: EncoderPreprocessing = SMALL
) -> Path:
    metadata = encoder_header.dump_encoder_metadata(f"random {seed}", padding, given)
    tensor_files.write_tensors(path, arrays(seed), metadata)
    return path


def photo(seed: int = 0, size: tuple[int, int] = (48, 40)) -> bytes:
    """Smooth noise: other pictures have other features."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (4, 5, 3), np.uint8))
    stream = io.BytesIO()
    coarse.resize(size, Image.Resampling.BICUBIC).save(stream, "JPEG")
    return stream.getvalue()
