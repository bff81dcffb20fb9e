"""The shapes dataset: made-up pictures, described in a few hundred English sentences.

A picture holds one or two coloured shapes; its features are what an ideal encoder would see of it,
with noise. Small enough to train on in seconds, rich enough that captions can be good or bad.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import InvalidSetting
from service.contract.formats import bundles
from service.contract.formats.bundles import BundleItem
from service.contract.formats.checkpoint_header import FeatureEncoder
from workers.inference import features

COLOURS = ("red", "green", "blue", "yellow", "black", "white")
SHAPES = ("circle", "square", "triangle", "star", "cross")
SIZES = ("small", "large")
RELATIONS = ("above", "below", "beside")
ENCODER = FeatureEncoder(name="shapes", digest="attributes-with-noise-1")
NOISE = 0.15
_SIDE = 3  # of a grid
_CELLS = [(row, column) for row in range(_SIDE) for column in range(_SIDE)]


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


def make_shapes(folder: Path, images: int = 1200, seed: int = 0, places: str | None = None) -> None:
    """A bundle: three quarters of the images to train, an eighth each for val and test. `places`:
    features of a "grid" or of "regions", not one vector of each image.
    """
    if places not in (None, *_PLACES):
        raise InvalidSetting(f"--places: expected {' or '.join(_PLACES)}, found {places!r:.60}")
    rng = np.random.default_rng(seed)
    scenes = [_scene(rng) for _ in range(images)]
    names = [f"shapes-{number:05}.png" for number in range(images)]
    splits = [_split(number, images) for number in range(images)]
    items = (
        BundleItem(name, split, tuple(_captions(scene, rng)))
        for name, split, scene in zip(names, splits, scenes, strict=True)
    )
    bundles.write_bundle_folder(folder, items)
    path = folder / bundles.FEATURES
    if places is None:
        rows = np.stack([_features(scene, rng) for scene in scenes])
        features.write_features(path, names, rows, ENCODER)
        return
    found = [[*_PLACES[places](scene, rng)] for scene in scenes]
    counts = np.array([len(each) for each in found])
    rows = np.zeros((images, counts.max(), len(found[0][0])), np.float32)
    for row, each in zip(rows, found, strict=True):
        row[: len(each)] = each
    rows += rng.normal(scale=NOISE, size=rows.shape).astype(np.float32)
    encoder = FeatureEncoder(name="shapes", digest=f"{places}-with-noise-1")
    features.write_features(path, names, rows, encoder, counts if places == "regions" else None)


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


def _grid(scene: _Scene, rng: np.random.Generator) -> Iterator[list[float]]:
    """A place for each cell: what is in it, and where it is."""
    cells = _cells(scene, rng)
    for row, column in _CELLS:
        at = [row == each for each in range(_SIDE)] + [column == each for each in range(_SIDE)]
        yield [*_seen(scene, cells.get((row, column))), *map(float, at)]


def _regions(scene: _Scene, rng: np.random.Generator) -> Iterator[list[float]]:
    """A region for each figure and for up to three spots with nothing, in any order."""
    cells = _cells(scene, rng)
    empty = [cell for cell in _CELLS if cell not in cells]
    spots = [*cells, *(empty[place] for place in rng.permutation(len(empty))[: rng.integers(4)])]
    for place in rng.permutation(len(spots)):
        row, column = spots[place]
        yield [*_seen(scene, cells.get(spots[place])), row / (_SIDE - 1), column / (_SIDE - 1)]


def _cells(scene: _Scene, rng: np.random.Generator) -> dict[tuple[int, int], _Figure]:
    """Place the figures; the first one is above, below or beside the second."""
    if scene.second is None:
        return {_CELLS[rng.integers(len(_CELLS))]: scene.first}
    line, (near, far) = int(rng.integers(_SIDE)), sorted(rng.permutation(_SIDE)[:2].tolist())
    first, second = {"above": (near, far), "below": (far, near)}.get(
        str(scene.relation), (near, far)
    )
    if scene.relation == "beside":
        return {(line, first): scene.first, (line, second): scene.second}
    return {(first, line): scene.first, (second, line): scene.second}


def _seen(scene: _Scene, figure: _Figure | None) -> list[float]:
    """Attributes of a figure, and whether people mention it first."""
    return [float(bit) for bit in (*_bits(figure), figure is not None and figure is scene.first)]


_PLACES: Mapping[str, Callable[[_Scene, np.random.Generator], Iterator[list[float]]]] = {
    "grid": _grid,
    "regions": _regions,
}
