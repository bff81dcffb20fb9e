"""Made-up pictures with sentences about them, and datasets of both."""

import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

COLOURS = ("red", "green", "blue", "yellow", "grey")
THINGS = ("square", "circle", "triangle")
HEIGHT, WIDTH = 40, 48


def sentences(images: int) -> list[list[str]]:
    """References of pictures that have a colour and a thing."""
    rng = np.random.default_rng(0)
    found = []
    for image in range(images):
        colour, thing = COLOURS[image % 5], THINGS[image % 3]
        every = [
            f"a {colour} {thing}",
            f"there is a {thing} and it is {colour}",
            f"one {colour} {thing} on a table.",
            f"The {thing}, unmistakably {colour}",
        ]
        found.append([every[at] for at in rng.permutation(4)[: rng.integers(1, 5)]])
    return found


def pictures(images: int, seed: int = 0) -> NDArray[np.uint8]:
    """(n, 40, 48, 3): noise around the colour and the thing of `sentences`."""
    rng = np.random.default_rng(seed)
    base = np.random.default_rng(9).integers(40, 216, (15, 5, 6, 3))
    grown = base.repeat(8, axis=1).repeat(8, axis=2)[np.arange(images) % 15]
    return (grown + rng.integers(-40, 40, (images, HEIGHT, WIDTH, 3))).astype(np.uint8)


def write_pictures(bundle: Path, rows: NDArray[np.uint8]) -> list[str]:
    folder = bundle / "images"
    folder.mkdir()
    names = [f"{place:04}.png" for place in range(len(rows))]
    for name, row in zip(names, rows, strict=True):
        Image.fromarray(row).save(folder / name)
    return names


def write_dataset(bundle: Path, images: int) -> list[str]:
    """Pictures and sentences as a split `test` in a folder that is there; returns their names."""
    names = write_pictures(bundle, pictures(images))
    lines = [
        json.dumps({"image": name, "split": "test", "references": references})
        for name, references in zip(names, sentences(images), strict=True)
    ]
    (bundle / "captions.jsonl").write_text("\n".join(lines) + "\n")
    return names
