"""A model's tensors, its words and a map become a captioner's description and tensors."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import RequestRefused
from service.contract.formats import checkpoint_header
from service.contract.formats.checkpoint_header import (
    CheckpointHeader,
    Description,
    Encoder,
    shapes,
)
from service.contract.formats.state_dicts import vocabularies
from service.contract.formats.state_dicts.maps import Map
from service.contract.formats.state_dicts.places import (
    AdaptiveMap,
    BottomUpMap,
    SoftMap,
    TransformerMap,
)
from workers.conversion.layers import Arrays, Floats, State
from workers.conversion.targets import attending, recurrent, transformer
from workers.conversion.targets.made import Made, Source
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
    made = _made(Source(state, words, len(by_id)), given)
    description = Description(
        given.architecture, made.config, words.words, given.tokenizer, encoder
    )
    _check_shapes(description, made.tensors)
    _check_left_over(given, state)
    return description, {name: tensor.astype(np.float32) for name, tensor in made.tensors.items()}


def _made(source: Source, given: Map) -> Made:
    match given:
        case SoftMap():
            return attending.soft(source, given)
        case AdaptiveMap():
            return attending.adaptive(source, given)
        case BottomUpMap():
            return attending.bottom_up(source, given)
        case TransformerMap():
            return transformer.make(source, given)
        case _:
            return recurrent.make(source, given)


def write(path: Path, description: Description, tensors: Tensors) -> CheckpointHeader:
    """Write the checkpoint, or nothing where it is none: words, too, have rules."""

    def save(partial: Path) -> CheckpointHeader:
        tensor_files.write_into(partial, tensors, checkpoint_header.metadata_of(description))
        return checkpoint_header.read(partial)

    return atomic.write(path, save)


def _check_shapes(description: Description, tensors: Mapping[str, Floats]) -> None:
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
