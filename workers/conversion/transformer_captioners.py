"""Captioners of torch.nn.TransformerDecoder over places, made by a map."""

import re

import numpy as np

from service.contract.errors import RequestRefused
from service.contract.formats.architectures import TransformerConfig
from service.contract.formats.map_files import TransformerMap, list_layer_names
from workers.conversion import layers
from workers.conversion.layers import (
    Affine,
    ConvertedCaptioner,
    Floats,
    ModelTensors,
    SourceModel,
    build_config,
    name_layer,
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
        image = layers.read_affine(state, list_layer_names(names.image))
    if names.positions is not None:
        _check_positions(state, names.positions, size)
    count = _layers(state, names.decoder)
    found = [_layer(state, f"{names.decoder}.layers.{at}") for at in range(count)]
    last = state.has(f"{names.decoder}.norm.weight")
    tensors = {
        **name_layer("image", image),
        "embedding.weight": embedding,
        **name_layer("output", output),
        **{
            f"layers.{at}.{name}": each
            for at, one in enumerate(found)
            for name, each in one.items()
        },
        **(_norm(state, f"{names.decoder}.norm", "norm") if last else {}),
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
    weight, bias = other.weight, other.bias
    return {
        **name_layer("words", own),
        **name_layer("words_out", layers.read_linear(state, f"{name}.self_attn.out_proj")),
        **name_layer("query", Affine(weight[:, :size], bias[:size])),
        **name_layer("places", Affine(weight[:, size:], bias[size:])),
        **name_layer("places_out", layers.read_linear(state, f"{name}.multihead_attn.out_proj")),
        **name_layer("inner", layers.read_linear(state, f"{name}.linear1")),
        **name_layer("outer", layers.read_linear(state, f"{name}.linear2")),
        **_norm(state, f"{name}.norm1", "words_norm"),
        **_norm(state, f"{name}.norm2", "places_norm"),
        **_norm(state, f"{name}.norm3", "inner_norm"),
    }


def _projections(state: ModelTensors, name: str) -> Affine:
    """Queries, keys and values beside each other."""
    weight = state.tensor(f"{name}.in_proj_weight", 2)
    bias = f"{name}.in_proj_bias"
    return Affine(weight.T, state.tensor(bias, 1) if state.has(bias) else np.zeros(len(weight)))


def _norm(state: ModelTensors, name: str, ours: str) -> dict[str, Floats]:
    weight = state.tensor(f"{name}.weight", 1)
    bias = f"{name}.bias"
    found = state.tensor(bias, 1) if state.has(bias) else np.zeros(len(weight))
    return {f"{ours}.weight": weight, f"{ours}.bias": found}


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
            "sine and cosine in turn (deploy/guide/checkpoints.md#transformer): learned positions, "
            "say, are converted by the way of ONNX (deploy/guide/onnx.md)"
        )
