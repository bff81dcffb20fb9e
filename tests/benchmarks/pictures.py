"""Features of pictures, beside the encoder alone on pixels that are decoded already."""

import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from rates import DeviceRates, Work  # beside this file
from rows import Row  # beside this file

from helpers import image_encoders
from service.contract.formats.encoder_header import EncoderPreprocessing
from workers.inference import mobilenet_v2, pictures

_TURNS = 4
_GIVEN = EncoderPreprocessing(stretched=(224, 224), mean=(128.0,) * 3, deviation=(128.0,) * 3)
_SIZES = ((224, 224), (500, 375), (640, 480))
_PROMISED = 0.8  # of the encoder's own rate


def measure(images: int, device: torch.device) -> list[Row]:
    """For JPEG of several sizes; 80 % of the encoder's own rate are promised."""
    rows, rates = [], DeviceRates.measure(device)
    with tempfile.TemporaryDirectory() as folder:
        path = image_encoders.write(Path(folder) / "e.safetensors", given=_GIVEN)
        encoder = mobilenet_v2.read_image_encoder(path, device)
        for size in _SIZES:
            bundle, names = _bundle(Path(folder) / f"{size[0]}", images, size)
            whole, alone = _seconds(encoder, bundle, names)
            rate = alone / whole
            said = f"{rate:.0%} of the encoder's own rate, {_PROMISED:.0%} are promised"
            name = f"features of JPEG of {size[0]} x {size[1]}"
            batch = np.zeros((encoder.batch, 224, 224, 3), np.uint8)
            own = Work.count(lambda batch=batch: encoder.features(batch))
            share = rates.describe(own, whole * encoder.batch / images)
            note = f"{said}; {images / whole:.1f} images/s; {share}"
            rows.append(Row(name, whole, "the encoder alone, on pixels", alone, note))
    return rows


def _bundle(folder: Path, images: int, size: tuple[int, int]) -> tuple[Path, list[str]]:
    names = [f"{place}.jpg" for place in range(images)]
    (folder / "images").mkdir(parents=True)
    for place, name in enumerate(names):
        (folder / "images" / name).write_bytes(image_encoders.photo(place, size=size))
    return folder, names


def _seconds(
    encoder: mobilenet_v2.MobileNetV2, bundle: Path, names: list[str]
) -> tuple[float, float]:
    """Of both, on the same images by turns, so that both see the same load."""
    whole = alone = 0.0
    part = -(-len(names) // _TURNS)
    for at in range(0, len(names), part):
        some = names[at : at + part]
        pixels = np.stack(list(pictures.read_pictures(bundle, some, fit=encoder.fit)))
        began = time.perf_counter()
        found = mobilenet_v2.encode_pictures(encoder, "0", bundle, some)
        whole += time.perf_counter() - began
        assert not found.undecoded
        began = time.perf_counter()
        for place in range(0, len(pixels), encoder.batch):
            encoder.features(pixels[place : place + encoder.batch])
        alone += time.perf_counter() - began
    return whole, alone
