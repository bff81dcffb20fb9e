"""The shapes dataset: made-up pictures, described in a few hundred English sentences.

A picture holds one or two coloured shapes; its features are what an ideal encoder would see of it,
with noise. Small enough to train on in seconds, rich enough that captions can be good or bad.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.contract.formats import bundles
from service.contract.formats.bundles import Item
from service.contract.formats.checkpoint_header import Encoder
from workers.inference import features

COLOURS = ("red", "green", "blue", "yellow", "black", "white")
SHAPES = ("circle", "square", "triangle", "star", "cross")
SIZES = ("small", "large")
RELATIONS = ("above", "below", "beside")
ENCODER = Encoder(name="shapes", digest="attributes-with-noise-1")
NOISE = 0.15


@dataclass(frozen=True)
class _Figure:
    size: str
    colour: str
    shape: str

    def __str__(self) -> str:
        return f"{self.size} {self.colour} {self.shape}"


@dataclass(frozen=True)
class _Scene:
    first: _Figure
    relation: str | None
    second: _Figure | None


def make(folder: Path, images: int = 1200, seed: int = 0) -> None:
    """A bundle: three quarters of the images to train, an eighth each for val and test."""
    rng = np.random.default_rng(seed)
    scenes = [_scene(rng) for _ in range(images)]
    names = [f"shapes-{number:05}.png" for number in range(images)]
    splits = [_split(number, images) for number in range(images)]
    items = (
        Item(name, split, tuple(_captions(scene, rng)))
        for name, split, scene in zip(names, splits, scenes, strict=True)
    )
    bundles.write_folder(folder, items)
    rows = np.stack([_features(scene, rng) for scene in scenes])
    features.write(folder / bundles.FEATURES, names, rows, ENCODER)


def _split(number: int, images: int) -> str:
    if number < images * 3 // 4:
        return "train"
    return "val" if number < images * 7 // 8 else "test"


def _scene(rng: np.random.Generator) -> _Scene:
    first = _figure(rng)
    if rng.random() < 0.4:
        return _Scene(first, None, None)
    return _Scene(first, str(rng.choice(RELATIONS)), _figure(rng))


def _figure(rng: np.random.Generator) -> _Figure:
    return _Figure(*(str(rng.choice(options)) for options in (SIZES, COLOURS, SHAPES)))


def _captions(scene: _Scene, rng: np.random.Generator) -> Iterator[str]:
    """Five people, who put it differently and do not all mention the size."""
    openings = ("a", "there is a", "this is a", "the picture shows a", "we see a")
    for opening in rng.permutation(openings):
        first = _mention(scene.first, rng)
        if scene.second is None:
            ending = rng.choice(["", " on a plain background", " alone"])
            yield f"{opening} {first}{ending} ."
        else:
            yield f"{opening} {first} {scene.relation} a {_mention(scene.second, rng)} ."


def _mention(figure: _Figure, rng: np.random.Generator) -> str:
    whole = str(figure)
    return whole if rng.random() < 0.6 else whole.split(" ", 1)[1]


def _features(scene: _Scene, rng: np.random.Generator) -> NDArray[np.float32]:
    """The attributes of both figures and their relation, each a bit, with noise."""
    bits = [*_bits(scene.first), *_bits(scene.second)]
    bits += [scene.relation == relation for relation in RELATIONS]
    return np.array(bits, np.float32) + rng.normal(scale=NOISE, size=len(bits)).astype(np.float32)


def _bits(figure: _Figure | None) -> list[bool]:
    words = () if figure is None else (figure.size, figure.colour, figure.shape)
    return [word in words for word in (*SIZES, *COLOURS, *SHAPES)]
