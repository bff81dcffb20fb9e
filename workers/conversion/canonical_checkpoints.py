"""Canonical checkpoints, made of a model's tensors, its words and a map."""

import tempfile
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import InvalidPackage, RequestRefused
from service.contract.formats import bundles, checkpoint_header, packages, state_dicts
from service.contract.formats.architectures import list_tensor_shapes
from service.contract.formats.checkpoint_header import (
    UNK,
    CheckpointDescription,
    CheckpointHeader,
    FeatureEncoder,
)
from service.contract.formats.map_files import (
    AdaptiveMap,
    AnyMap,
    BottomUpMap,
    SoftMap,
    TransformerMap,
)
from service.contract.formats.packages import ModelPackage
from service.contract.formats.vocabularies import MODEL_TOKENIZERS
from workers import files, tensor_files
from workers.conversion import foreign_files, recurrent_captioners, transformer_captioners
from workers.conversion.foreign_files import ConversionLimits
from workers.conversion.layers import Arrays, ConvertedCaptioner, Floats, ModelTensors, SourceModel

Tensors = dict[str, NDArray[np.float32]]
_MOST_NAMED = 10


def convert_tensors(
    arrays: Arrays, by_id: Sequence[str], given: AnyMap, encoder: FeatureEncoder
) -> tuple[CheckpointDescription, Tensors]:
    """Convert tensors. Raises RequestRefused where a layer is missing, has other shapes than the
    captioner needs, or tensors are left over that the map does not ignore.
    """
    state = ModelTensors(arrays)
    words = state_dicts.order_words(by_id, given.words)
    made = _make_captioner(SourceModel(state, words, len(by_id)), given)
    description = CheckpointDescription(
        given.architecture, made.config, words.words, given.tokenizer, encoder
    )
    _check_shapes(description, made.tensors)
    _check_left_over(given, state)
    return description, {name: tensor.astype(np.float32) for name, tensor in made.tensors.items()}


def _make_captioner(source: SourceModel, given: AnyMap) -> ConvertedCaptioner:
    match given:
        case SoftMap():
            return recurrent_captioners.make_soft_attention(source, given)
        case AdaptiveMap():
            return recurrent_captioners.make_adaptive_attention(source, given)
        case BottomUpMap():
            return recurrent_captioners.make_bottom_up_top_down(source, given)
        case TransformerMap():
            return transformer_captioners.make_transformer(source, given)
        case _:
            return recurrent_captioners.make_recurrent(source, given)


def write_canonical(
    path: Path, description: CheckpointDescription, tensors: Tensors
) -> CheckpointHeader:
    """Write the checkpoint, or nothing where it is none: words, too, have rules."""

    def save(partial: Path) -> CheckpointHeader:
        tensor_files.write_tensors_into(
            partial, tensors, checkpoint_header.dump_checkpoint_metadata(description)
        )
        return checkpoint_header.read_checkpoint_header(partial)

    return files.write_atomically(path, save)


def _check_shapes(description: CheckpointDescription, tensors: Mapping[str, Floats]) -> None:
    words = len(description.vocabulary)
    for name, expected in list_tensor_shapes(
        description.architecture, description.config, words
    ).items():
        found = tensors[name].shape
        if found != expected:
            raise RequestRefused(
                f"{description.architecture}: {name} would be {list(found)}, and "
                f"{list(expected)} is needed: does the image enter elsewhere "
                "(deploy/guide/file-formats.md), or is another layer meant?"
            )


def _check_left_over(given: AnyMap, state: ModelTensors) -> None:
    left = [name for name in state.left_over() if not given.ignores(name)]
    if left:
        more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
        raise RequestRefused(
            "tensors that no layer of the map reads: "
            f"{', '.join(left[:_MOST_NAMED])}{more}. If the model "
            "computes captions without them, name them under `ignore`, as a list of patterns"
        )


_CHUNK = 1 << 24


def convert_package(path: Path, box: ConversionLimits) -> tuple[CheckpointDescription, Tensors]:
    """Convert a package. Raises RequestRefused or UnusableCheckpoint if the map fits no tensors."""
    with tempfile.TemporaryDirectory(prefix="prescore-") as folder:
        tensors = Path(folder) / "tensors"
        with packages.open_package(path) as package:
            found = state_dicts.read_state_dict(package)
            _copy_file(package, found.tensors, tensors)
        arrays, _ = foreign_files.read_tensors(tensors, box)
        return convert_tensors(arrays, found.by_id, found.map, found.encoder)


def _copy_file(package: ModelPackage, name: str, path: Path) -> None:
    size = package.file(name).size
    with package.file(name).open() as stream, path.open("wb") as out:
        while chunk := stream.read(_CHUNK):
            out.write(chunk)
        if out.tell() != size:
            raise InvalidPackage(f"{name}: expected {size:,} bytes, found {out.tell():,}")


_CAPTIONS = 10_000  # that are looked at
_MUCH, _LESS = 0.02, 0.5  # of all words; of the share by the tokenizer that is chosen


def remark_on_unknown_words(bundle: Path, description: CheckpointDescription) -> str | None:
    """A sentence if another tokenizer leaves fewer than half as many words of a bundle's references
    unknown to the model.
    """
    known = set(description.vocabulary[UNK + 1 :])
    split = bundles.list_splits(bundle)[0]
    items = bundles.read_split(bundle, split)
    captions = [*islice((text for item in items for text in item.references), _CAPTIONS)]
    shares = {name: _share(captions, name, known) for name in MODEL_TOKENIZERS}
    own = shares[description.tokenizer]
    best = min(shares, key=lambda name: shares[name])
    if own < _MUCH or shares[best] > _LESS * own:
        return None
    return (
        f"{own:.1%} of the references' words ({split} of {bundle}) are unknown to the model by the "
        f"tokenizer {description.tokenizer}, and {shares[best]:.1%} by {best}: is `tokenizer` in "
        "the map right? With a wrong one its scores are wrong"
    )


def _share(captions: Iterable[str], tokenizer: str, known: set[str]) -> float:
    words: Sequence[str] = [word for text in captions for word in MODEL_TOKENIZERS[tokenizer](text)]
    return sum(word not in known for word in words) / max(1, len(words))
