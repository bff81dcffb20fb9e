"""A model's tensors, its words and a map become a captioner's description and tensors."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from service.contract.errors import RequestRefused
from service.contract.formats import checkpoint_header
from service.contract.formats.checkpoint_header import (
    CheckpointHeader,
    Config,
    Description,
    Encoder,
    shapes,
)
from service.contract.formats.state_dicts import vocabularies
from service.contract.formats.state_dicts.maps import Map
from service.contract.formats.state_dicts.vocabularies import Ordered
from service.contract.wording import told
from workers.conversion import layers
from workers.conversion.layers import Affine, Arrays, Cell, Floats, State
from workers.files import atomic, tensor_files

Tensors = dict[str, NDArray[np.float32]]
_MOST_NAMED = 10


def convert(
    arrays: Arrays, by_id: Sequence[str], given: Map, encoder: Encoder
) -> tuple[Description, Tensors]:
    """Raises RequestRefused where a layer is missing, has other shapes than the captioner needs, or
    tensors are left over that the map does not ignore.
    """
    state = State(arrays)
    words = vocabularies.ordered(by_id, given.words)
    image = layers.affine(state, given.images)
    cell = layers.cell(state, given.layers.cell)
    embedding = state.tensor(f"{given.layers.embedding}.weight", 2)
    output = layers.linear(state, given.layers.output)
    _check_vocabulary(by_id, embedding, output)
    config = _config(given, image, cell, embedding)
    description = Description(given.architecture, config, words.words, given.tokenizer, encoder)
    tensors = {
        "image.weight": image.weight,
        "image.bias": image.bias,
        "embedding.weight": embedding[words.read],
        **_softmax(given, words, output, image),
        **_initial(given, state, cell),
        **_cell(given, cell, image),
    }
    _check_shapes(description, tensors)
    _check_left_over(given, state)
    return description, {name: tensor.astype(np.float32) for name, tensor in tensors.items()}


def write(path: Path, description: Description, tensors: Tensors) -> CheckpointHeader:
    """Write the checkpoint, or nothing where it is none: words, too, have rules."""

    def save(partial: Path) -> CheckpointHeader:
        tensor_files.write_into(partial, tensors, checkpoint_header.metadata_of(description))
        return checkpoint_header.read(partial)

    return atomic.write(path, save)


def _config(given: Map, image: Affine, cell: Cell, embedding: Floats) -> Config:
    embedded, seen = embedding.shape[1], len(image.bias)
    own = given.architecture in checkpoint_header.WITH_IMAGE_SIZE and seen != cell.size
    try:
        return Config(
            cell=cell.kind,
            size=cell.size,
            embedding_size=None if embedded == cell.size else embedded,
            image_size=seen if own else None,
            feature_size=len(image.weight),
            normalize=given.normalize,
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise RequestRefused(f"the model's {first['loc'][0]}: {told(first)}") from None


def _softmax(given: Map, words: Ordered, output: Affine, image: Affine) -> dict[str, Floats]:
    weight = output.weight
    if given.architecture == "merge" and given.order.output[0] == "state":
        weight = np.roll(weight, len(image.bias), axis=0)
    return {
        "output.weight": weight[:, words.written],
        "output.bias": output.bias[words.written],
    }


def _initial(given: Map, state: State, cell: Cell) -> dict[str, Floats]:
    if given.architecture not in checkpoint_header.WITH_IMAGE_SIZE:
        return {}
    name = given.layers.initial
    if name is None:
        return {"initial": np.zeros(cell.size)}
    found = state.arrays.get(name)
    dimensions = 1 if found is None else found.ndim
    return {"initial": state.tensor(name, dimensions).reshape(-1)}


def _cell(given: Map, cell: Cell, image: Affine) -> dict[str, Floats]:
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


def _check_vocabulary(by_id: Sequence[str], embedding: Floats, output: Affine) -> None:
    for name, found in (("embedding", len(embedding)), ("output", len(output.bias))):
        if found != len(by_id):
            raise RequestRefused(
                f"map, layers.{name}: is for {found} words, and the vocabulary has {len(by_id)}"
            )


def _check_shapes(description: Description, tensors: dict[str, Floats]) -> None:
    words = len(description.vocabulary)
    for name, expected in shapes(description.architecture, description.config, words).items():
        found = tensors[name].shape
        if found != expected:
            raise RequestRefused(
                f"{description.architecture}: {name} would be {list(found)}, and "
                f"{list(expected)} is needed: does the image enter elsewhere "
                "(deploy/guide/captioners.md), or is another layer meant?"
            )


def _check_left_over(given: Map, state: State) -> None:
    left = [name for name in state.left_over() if not given.ignores(name)]
    if left:
        more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
        raise RequestRefused(
            "tensors that no layer of the map reads: "
            f"{', '.join(left[:_MOST_NAMED])}{more}. If the model "
            "computes captions without them, name them under `ignore`, as a list of patterns"
        )
