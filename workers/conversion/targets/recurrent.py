"""`init`, `pre`, `par` and `merge`."""

import numpy as np

from service.contract.formats import checkpoint_header
from service.contract.formats.checkpoint_header import Config
from service.contract.formats.state_dicts.maps import RecurrentMap
from workers.conversion import layers
from workers.conversion.layers import Affine, Cell, Floats, State
from workers.conversion.targets.made import Made, Source, configured, named


def make(source: Source, given: RecurrentMap) -> Made:
    state = source.state
    image = layers.affine(state, given.images)
    cell = layers.cell(state, given.layers.cell)
    embedding = source.embedding(given.layers.embedding)
    output = source.output(given.layers.output)
    tensors = {
        **named("image", image),
        "embedding.weight": embedding,
        **named("output", _output(given, output, image)),
        **_initial(given, state, cell),
        **_cell(given, cell, image),
    }
    return Made(configured(lambda: _config(given, image, cell, embedding)), tensors)


def _config(given: RecurrentMap, image: Affine, cell: Cell, embedding: Floats) -> Config:
    embedded, seen = embedding.shape[1], len(image.bias)
    own = given.architecture in checkpoint_header.WITH_IMAGE_SIZE and seen != cell.size
    return Config(
        cell=cell.kind,
        size=cell.size,
        embedding_size=None if embedded == cell.size else embedded,
        image_size=seen if own else None,
        feature_size=len(image.weight),
        normalize=given.normalize,
    )


def _output(given: RecurrentMap, output: Affine, image: Affine) -> Affine:
    if given.architecture == "merge" and given.order.output[0] == "state":
        return Affine(np.roll(output.weight, len(image.bias), axis=0), output.bias)
    return output


def _initial(given: RecurrentMap, state: State, cell: Cell) -> dict[str, Floats]:
    if given.architecture not in checkpoint_header.WITH_IMAGE_SIZE:
        return {}
    name = given.layers.initial
    if name is None:
        return {"initial": np.zeros(cell.size)}
    found = state.arrays.get(name)
    dimensions = 1 if found is None else found.ndim
    return {"initial": state.tensor(name, dimensions).reshape(-1)}


def _cell(given: RecurrentMap, cell: Cell, image: Affine) -> dict[str, Floats]:
    above = cell.given
    if given.architecture == "par" and given.order.cell[0] == "word":
        above = np.roll(above, len(image.bias), axis=0)
    rows, bias, at = np.concatenate([above, cell.state]), cell.given_bias, 2 * cell.size
    if cell.kind == "lstm":
        return {"gates.weight": rows, "gates.bias": bias + cell.state_bias}
    return {
        "gates.weight": rows[:, :at],
        "gates.bias": (bias + cell.state_bias)[:at],
        "candidate.weight": rows[:, at:],
        "candidate.bias": bias[at:],
        "candidate.state_bias": cell.state_bias[at:],
    }
