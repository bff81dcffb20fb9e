"""Decoders whose layers are BERT's: BERT itself, BLIP's text decoder, GIT's."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from workers.inference.huggingface import before
from workers.inference.huggingface.stack import Pair, looked_at


class _Layer:
    def __init__(self, layer: Any) -> None:
        self._layer = layer

    def own(self, x: Tensor, _times: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        part = self._layer.attention.self
        return part.query(x), part.key(x), part.value(x)

    def after_own(self, x: Tensor, read: Tensor) -> Tensor:
        return self._layer.attention.output(read, x)  # type: ignore[no-any-return]

    def image(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        part = self._layer.crossattention.self
        return part.key(seen), part.value(seen)

    def look(self, x: Tensor) -> Tensor:
        return self._layer.crossattention.self.query(x)  # type: ignore[no-any-return]

    def after_look(self, x: Tensor, read: Tensor) -> Tensor:
        return self._layer.crossattention.output(read, x)  # type: ignore[no-any-return]

    def think(self, x: Tensor) -> Tensor:
        return self._layer.output(self._layer.intermediate(x), x)  # type: ignore[no-any-return]


class _Body:
    def __init__(self, embeddings: Any, layers: Any, heads: int) -> None:
        self._embeddings = embeddings
        self.heads = heads
        self.layers = [_Layer(layer) for layer in layers]

    def embed(self, words: Tensor, times: Tensor) -> Tensor:
        return self._embeddings(input_ids=words, position_ids=times)  # type: ignore[no-any-return]


class Bert(_Body):
    """`network` is a BertLMHeadModel or a BlipTextLMHeadModel."""

    joint = False

    def __init__(self, network: Any, into: nn.Module | None = None) -> None:
        body = network.bert
        super().__init__(body.embeddings, body.encoder.layer, network.config.num_attention_heads)
        head = network.cls.predictions
        self._transform, self._into = head.transform, into
        self.weight: Tensor = head.decoder.weight
        self.bias: Tensor | None = head.decoder.bias

    def images(self, seen: Tensor) -> Iterator[Pair]:
        return looked_at(self.layers, self._into, seen, self.heads)

    def finish(self, x: Tensor) -> Tensor:
        return self._transform(x)  # type: ignore[no-any-return]


class Git(_Body):
    """A GitForCausalLM: images go through the same layers, and are read together with words."""

    joint = True

    def __init__(self, network: Any) -> None:
        body = network.git
        super().__init__(body.embeddings, body.encoder.layer, network.config.num_attention_heads)
        self.weight: Tensor = network.output.weight
        self.bias: Tensor | None = network.output.bias
        self._project = body.visual_projection

    def images(self, seen: Tensor) -> Iterator[Pair]:
        return before.read(self.layers, self._project(seen), self.heads)

    def finish(self, x: Tensor) -> Tensor:
        return x
