"""Features of pictures, beside the encoder alone on pixels that are decoded already. Prints, and
judges nothing.

PYTHONPATH=. python tests/benchmarks/pictures.py [IMAGES]
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "helpers"))

import image_encoders
from service.contract.formats.encoder_header import Preprocessing
from workers.inference import pictures
from workers.inference.encoders import encoding, mobilenet_v2

TURNS = 4
GIVEN = Preprocessing(stretched=(224, 224), mean=(128.0,) * 3, deviation=(128.0,) * 3)


def main() -> None:
    images = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    threads = int(os.environ.get("OMP_NUM_THREADS", "2"))
    torch.set_num_threads(threads)
    folder = Path(tempfile.mkdtemp())
    encoder = mobilenet_v2.read(image_encoders.write(folder / "e.safetensors", given=GIVEN))
    print(f"{images} images, {threads} threads, load {os.getloadavg()[0]:.1f}")
    print("| JPEG of | features, images/s | the encoder alone | of its rate |\n|---|---|---|---|")
    for size in ((224, 224), (500, 375), (640, 480)):
        names = [f"{place}.jpg" for place in range(images)]
        bundle = folder / f"{size[0]}"
        (bundle / "images").mkdir(parents=True)
        for place, name in enumerate(names):
            content = image_encoders.photo(place, size=size)
            (bundle / "images" / name).write_bytes(content)
        whole, alone = _seconds(encoder, bundle, names)
        rates = images / whole, images / alone
        print(
            f"| {size[0]} x {size[1]} | {rates[0]:.1f} | {rates[1]:.1f} | {alone / whole:.0%} |",
            flush=True,
        )


def _seconds(encoder, bundle, names):
    """Of both, on the same images by turns, so that both see the same load."""
    whole = alone = 0.0
    part = -(-len(names) // TURNS)
    for at in range(0, len(names), part):
        some = names[at : at + part]
        pixels = np.stack(list(pictures.read(bundle, some, fit=encoder.fit)))
        began = time.perf_counter()
        found = encoding.encode(encoder, "0", bundle, some)
        whole += time.perf_counter() - began
        assert not found.undecoded
        began = time.perf_counter()
        for place in range(0, len(pixels), encoder.batch):
            encoder.features(pixels[place : place + encoder.batch])
        alone += time.perf_counter() - began
    return whole, alone


if __name__ == "__main__":
    main()
