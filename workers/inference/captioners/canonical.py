"""The base of all captioners of canonical checkpoints: words, features, one last matrix product."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor
from torch.nn import functional

from service.contract.formats.checkpoint_header import CheckpointDescription, FeatureEncoder
from workers.inference import features
from workers.inference.captioners.cells import Tensors
from workers.inference.devices import Product
from workers.inference.features import Inputs
from workers.inference.packing import Packed
from workers.inference.vocabulary import WordTokens

_SHARED = ("embedding.weight", "output.weight", "output.bias")


@dataclass(frozen=True)
class DropoutRates:
    """Dropout rates in training: of the image, the embedding, the output layer's input."""

    image: float
    embedding: float
    output: float


class CanonicalCaptioner:
    """`images` is what `look` gives; a `state` what `begin` and `step` give."""

    settles = True
    walks = True
    search = None
    batch_tokens = 8_192  # of hidden rows in memory at the same time: 17 MB for 512 units

    def __init__(
        self,
        description: CheckpointDescription,
        tensors: Tensors,
        dropout: DropoutRates | None = None,
        output: Product | None = None,
    ) -> None:
        self.description = description
        self.tokens = WordTokens(description.vocabulary, description.tokenizer)
        self.tensors = dict(tensors)
        self.dropout = dropout
        self.output = output or Product(tensors["output.weight"], tensors["output.bias"])
        self._exact: Self | None = None
        self._build()

    def _build(self) -> None:
        """Make of `tensors` what is computed with."""
        raise NotImplementedError

    @property
    def together(self) -> int:
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        return self.output.weight.device

    @property
    def encoder(self) -> FeatureEncoder:
        return self.description.encoder

    def inputs(self, bundle: Path, images: Sequence[str]) -> Inputs:
        return features.read_features(bundle, images, self.encoder, self.description.config.inputs)

    def check(self, inputs: Inputs) -> None:
        config = self.description.config
        features.check_features_size(inputs, config.feature_size, config.inputs)

    def look(self, features: Tensor) -> Any:
        raise NotImplementedError

    def hidden(self, images: Any, captions: Packed) -> Tensor:
        raise NotImplementedError

    def begin(self, images: Any) -> Any:
        raise NotImplementedError

    def step(self, state: Any, words: Tensor) -> tuple[Tensor, Any]:
        raise NotImplementedError

    def select(self, state: Any, rows: Tensor) -> Any:
        raise NotImplementedError

    def exact(self) -> Self:
        """The captioner in float64; the large tensors stay shared in float32, which is exact."""
        if self._exact is None:
            tensors = {
                name: tensor if name in _SHARED else tensor.double()
                for name, tensor in self.tensors.items()
            }
            self._exact = type(self)(self.description, tensors, output=self.output)
        return self._exact

    def on(self, device: torch.device) -> Self:
        return type(self)(
            self.description, {name: tensor.to(device) for name, tensor in self.tensors.items()}
        )

    def _drop(self, x: Tensor, place: str) -> Tensor:
        if self.dropout is None:
            return x
        return functional.dropout(x, getattr(self.dropout, place))
