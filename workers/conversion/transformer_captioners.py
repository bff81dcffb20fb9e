"""Captioners of torch.nn.TransformerDecoder over places, made by a map."""

import re

import numpy as np

from service.contract.errors import RequestRefused
from service.contract.formats.architectures import TransformerConfig
from service.contract.formats.map_files import TransformerMap
from workers.conversion import layers
from workers.conversion.layers import (
    Affine,
    ConvertedCaptioner,
    Floats,
    ModelTensors,
    SourceModel,
    build_config,
    name_layers,
)

_AS_FAR = 1e-3  # of another position's wave: float32 of 10,000 words


def make_transformer(source: SourceModel, given: TransformerMap) -> ConvertedCaptioner:
    state, names = source.state, given.layers
    embedding, output = source.embedding(names.embedding), source.output(names.output)
    size = embedding.shape[1]
    if given.scale == "none":
        embedding = embedding / np.sqrt(size)
    if names.image is None:
        image = Affine(np.eye(size), np.zeros(size))
    else:
        image = layers.read_affine(state, names.image)
    if names.positions is not None:
        _check_positions(state, names.positions, size)
    count = _layers(state, names.decoder)
    found = [_layer(state, f"{names.decoder}.layers.{at}") for at in range(count)]
    last = state.has(f"{names.decoder}.norm.weight")
    tensors = {
        **name_layers(image=image, output=output),
        "embedding.weight": embedding,
        **{
            f"layers.{at}.{name}": each
            for at, one in enumerate(found)
            for name, each in one.items()
        },
        **(name_layers(norm=_norm(state, f"{names.decoder}.norm")) if last else {}),
    }
    config = build_config(
        lambda: TransformerConfig(
            inputs=given.inputs,
            size=size,
            layers=count,
            heads=given.heads,
            inner_size=len(found[0]["inner.bias"]),
            feature_size=len(image.weight),
            normalize=given.normalize,
            norms=given.norms,
            activation=given.activation,
            last_norm=last,
        )
    )
    return ConvertedCaptioner(config, tensors)


def _layers(state: ModelTensors, decoder: str) -> int:
    within = re.compile(re.escape(decoder) + r"\.layers\.(\d+)\.")
    numbers = {int(found[1]) for name in state.arrays if (found := within.match(name))}
    if not numbers or numbers != set(range(len(numbers))):
        raise RequestRefused(
            f"map, layers.decoder: expected a TransformerDecoder, found no tensors "
            f"{f'{decoder}.layers.0.':.100}…"
        )
    return len(numbers)


def _layer(state: ModelTensors, name: str) -> dict[str, Floats]:
    own, other = (_projections(state, f"{name}.{each}") for each in ("self_attn", "multihead_attn"))
    size = len(own.weight)
    return name_layers(
        words=own,
        words_out=layers.read_linear(state, f"{name}.self_attn.out_proj"),
        query=Affine(other.weight[:, :size], other.bias[:size]),
        places=Affine(other.weight[:, size:], other.bias[size:]),
        places_out=layers.read_linear(state, f"{name}.multihead_attn.out_proj"),
        inner=layers.read_linear(state, f"{name}.linear1"),
        outer=layers.read_linear(state, f"{name}.linear2"),
        words_norm=_norm(state, f"{name}.norm1"),
        places_norm=_norm(state, f"{name}.norm2"),
        inner_norm=_norm(state, f"{name}.norm3"),
    )


def _projections(state: ModelTensors, name: str) -> Affine:
    """Queries, keys and values beside each other."""
    weight = state.tensor(f"{name}.in_proj_weight", 2)
    return Affine(weight.T, state.bias(f"{name}.in_proj_bias", len(weight)))


def _norm(state: ModelTensors, name: str) -> Affine:
    """A gain (s) and a shift (s)."""
    weight = state.tensor(f"{name}.weight", 1)
    return Affine(weight, state.bias(f"{name}.bias", len(weight)))


def _check_positions(state: ModelTensors, name: str, size: int) -> None:
    """Raise RequestRefused unless a table has sine and cosine in turn, of ever longer waves."""
    found = state.tensor(name, state.arrays[name].ndim if state.has(name) else 2)
    rows = found.reshape(-1, found.shape[-1]) if found.size else found
    usual = np.zeros((0, 0))
    if rows.shape[-1] == size:
        pairs = np.arange(size) // 2 * 2
        angles = np.arange(len(rows))[:, None] / 10_000 ** (pairs / size)
        usual = np.where(np.arange(size) % 2, np.cos(angles), np.sin(angles))
    if usual.shape != rows.shape or np.abs(usual - rows).max(initial=0) > _AS_FAR:
        raise RequestRefused(
            f"map, layers.positions: {name!r:.100} of {list(found.shape)} has other values than "
            "sine and cosine in turn (deploy/guide/file-formats.md#transformer): for learned "
            "positions, use an ONNX bundle (deploy/guide/bring-a-model.md)"
        )
