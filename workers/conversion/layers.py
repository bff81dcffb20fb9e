"""Layers of torch, read from their tensors: what they compute as matrices (in, out) in float64."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from service.contract import wording
from service.contract.errors import RequestRefused
from service.contract.formats.architectures import AnyConfig
from service.contract.formats.map_files import list_layer_names
from service.contract.formats.state_dicts import WordOrder
from service.contract.wording import describe_field_error

Arrays = Mapping[str, NDArray[np.floating]]
Floats = NDArray[np.float64]
EPS = 1e-5  # of BatchNorm1d, unless its code says another one

_GATES: Mapping[int, Literal["torch_gru", "lstm"]] = {3: "torch_gru", 4: "lstm"}


@dataclass(frozen=True)
class Affine:
    """x @ weight + bias."""

    weight: Floats
    bias: Floats

    def then(self, other: "Affine") -> "Affine":
        return Affine(self.weight @ other.weight, self.bias @ other.weight + other.bias)


@dataclass(frozen=True)
class CellWeights:
    """A cell whose gates stand side by side: of the input (i, k s), of the state (s, k s)."""

    kind: Literal["torch_gru", "lstm"]
    given: Floats
    state: Floats
    given_bias: Floats
    state_bias: Floats

    @property
    def size(self) -> int:
        return len(self.state)


@dataclass
class ModelTensors:
    """A model's tensors, and which of them were read."""

    arrays: Arrays
    used: set[str] = field(default_factory=set)

    def tensor(self, name: str, dimensions: int) -> Floats:
        if name not in self.arrays:
            raise RequestRefused(
                f"no tensor {name!r:.100}{wording.suggest_names(name, self.arrays)}"
            )
        found = self.arrays[name]
        if found.ndim != dimensions:
            raise RequestRefused(
                f"{name!r:.100}: expected {dimensions} dimensions, found {list(found.shape)}"
            )
        self.used.add(name)
        return found.astype(np.float64)

    def has(self, name: str) -> bool:
        return name in self.arrays

    def bias(self, name: str, size: int) -> Floats:
        """A bias, which is zero where there is none."""
        return self.tensor(name, 1) if self.has(name) else np.zeros(size)

    def left_over(self) -> list[str]:
        return [name for name in self.arrays if name not in self.used]


def read_linear(state: ModelTensors, name: str) -> Affine:
    weight = state.tensor(f"{name}.weight", 2)
    return Affine(weight.T, state.bias(f"{name}.bias", len(weight)))


def read_affine(state: ModelTensors, names: str | list[str]) -> Affine:
    """Read one linear layer, or several in sequence, as one."""
    first, *others = list_layer_names(names)
    found = _layer(state, first)
    for name in others:
        following = _layer(state, name)
        if len(following.weight) != len(found.bias):
            raise RequestRefused(
                f"{name!r:.100} takes {len(following.weight)} numbers, and the layer before it "
                f"gives {len(found.bias)}"
            )
        found = found.then(following)
    return found


def _layer(state: ModelTensors, name: str) -> Affine:
    return (
        _batch_norm(state, name) if state.has(f"{name}.running_mean") else read_linear(state, name)
    )


def _batch_norm(state: ModelTensors, name: str) -> Affine:
    mean, variance = (state.tensor(f"{name}.{what}", 1) for what in ("running_mean", "running_var"))
    scale = 1 / np.sqrt(variance + EPS)
    shift = -mean * scale
    if state.has(f"{name}.weight"):
        weight = state.tensor(f"{name}.weight", 1)
        scale, shift = scale * weight, shift * weight + state.tensor(f"{name}.bias", 1)
    return Affine(np.diag(scale), shift)


def read_cell(state: ModelTensors, name: str) -> CellWeights:
    """Read the weights of an LSTM or a GRU of one layer and one direction."""
    suffix = "_l0" if state.has(f"{name}.weight_ih_l0") else ""
    more = [
        at
        for at in state.arrays
        if at.startswith(f"{name}.")
        and (at.endswith(("_reverse", "_l1")) or at.startswith(f"{name}.weight_hr"))
    ]
    if more:
        raise RequestRefused(
            f"{name!r:.100}: expected one layer in one direction without a projection, found "
            f"{more[0]!r:.100}: such a model can be scored as an ONNX bundle "
            "or by its columns (deploy/guide/bring-a-model.md)"
        )
    given = state.tensor(f"{name}.weight_ih{suffix}", 2)
    kept = state.tensor(f"{name}.weight_hh{suffix}", 2)
    gates, size = len(kept) // max(1, kept.shape[1]), kept.shape[1]
    if gates not in _GATES or kept.shape != (gates * size, size) or len(given) != len(kept):
        raise RequestRefused(
            f"{name!r:.100}: expected an LSTM (four gates) or a GRU (three), found weights of "
            f"{list(given.shape)} and {list(kept.shape)}"
        )
    biases = (state.bias(f"{name}.bias_{of}{suffix}", len(kept)) for of in ("ih", "hh"))
    return CellWeights(_GATES[gates], given.T, kept.T, *biases)


@dataclass(frozen=True)
class ConvertedCaptioner:
    """A captioner's config and its tensors."""

    config: AnyConfig
    tensors: Mapping[str, Floats]


@dataclass(frozen=True)
class SourceModel:
    """A model's tensors, how many words it has, and which of its ids are a captioner's."""

    state: ModelTensors
    words: WordOrder
    size: int

    def embedding(self, name: str) -> Floats:
        found = self.state.tensor(f"{name}.weight", 2)
        self._check("embedding", len(found))
        return found[self.words.read]

    def output(self, name: str) -> Affine:
        found = read_linear(self.state, name)
        self._check("output", len(found.bias))
        return Affine(found.weight[:, self.words.written], found.bias[self.words.written])

    def _check(self, name: str, found: int) -> None:
        if found != self.size:
            ids = (
                ": do its ids begin with 1, as those of `ix_to_word`? Give them as an object "
                "with ids then"
                if found == self.size + 1
                else ""
            )
            raise RequestRefused(
                f"map, layers.{name}: is for {found} words, and the vocabulary has {self.size}{ids}"
            )


def build_config(make: Callable[[], AnyConfig]) -> AnyConfig:
    """Build a config. Raises RequestRefused for a size that no captioner may have."""
    try:
        return make()
    except ValidationError as error:
        first = error.errors()[0]
        where = first["loc"][0] if first["loc"] else "config"
        raise RequestRefused(f"the model's {where}: {describe_field_error(first)}") from None


def name_layers(**layers: Affine) -> dict[str, Floats]:
    """The weight and the bias of each layer, by the names that checkpoints have."""
    return {
        f"{name}.{part}": tensor
        for name, layer in layers.items()
        for part, tensor in vars(layer).items()
    }
