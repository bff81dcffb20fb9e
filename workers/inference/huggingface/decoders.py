"""Decoders of transformers' networks by layers: BERT, GIT, GPT-2."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from workers.inference.huggingface import decoder_stack
from workers.inference.huggingface.decoder_stack import KeysAndValues, project_images


class _BertLayer:
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


class _BertBody:
    def __init__(self, embeddings: Any, layers: Any, heads: int) -> None:
        self._embeddings = embeddings
        self.heads = heads
        self.layers = [_BertLayer(layer) for layer in layers]

    def embed(self, words: Tensor, times: Tensor) -> Tensor:
        return self._embeddings(input_ids=words, position_ids=times)  # type: ignore[no-any-return]


class BertDecoder(_BertBody):
    """`network` is a BertLMHeadModel or a BlipTextLMHeadModel."""

    joint = False

    def __init__(self, network: Any, into: nn.Module | None = None) -> None:
        body = network.bert
        super().__init__(body.embeddings, body.encoder.layer, network.config.num_attention_heads)
        head = network.cls.predictions
        self._transform, self._into = head.transform, into
        self.weight: Tensor = head.decoder.weight
        self.bias: Tensor | None = head.decoder.bias

    def images(self, seen: Tensor) -> Iterator[KeysAndValues]:
        return project_images(self.layers, self._into, seen, self.heads)

    def finish(self, x: Tensor) -> Tensor:
        return self._transform(x)  # type: ignore[no-any-return]


class GitDecoder(_BertBody):
    """A GitForCausalLM: images go through the same layers, and are read together with words."""

    joint = True

    def __init__(self, network: Any) -> None:
        body = network.git
        super().__init__(body.embeddings, body.encoder.layer, network.config.num_attention_heads)
        self.weight: Tensor = network.output.weight
        self.bias: Tensor | None = network.output.bias
        self._project = body.visual_projection

    def images(self, seen: Tensor) -> Iterator[KeysAndValues]:
        return decoder_stack.read_prefix(self.layers, self._project(seen), self.heads)

    def finish(self, x: Tensor) -> Tensor:
        return x


class _Gpt2Layer:
    def __init__(self, block: Any) -> None:
        self._block = block

    def own(self, x: Tensor, _times: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        query, keys, values = self._block.attn.c_attn(self._block.ln_1(x)).chunk(3, dim=2)
        return query, keys, values

    def after_own(self, x: Tensor, read: Tensor) -> Tensor:
        return x + self._block.attn.c_proj(read)  # type: ignore[no-any-return]

    def image(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        keys, values = self._block.crossattention.c_attn(seen).chunk(2, dim=2)
        return keys, values

    def look(self, x: Tensor) -> Tensor:
        return self._block.crossattention.q_attn(  # type: ignore[no-any-return]
            self._block.ln_cross_attn(x)
        )

    def after_look(self, x: Tensor, read: Tensor) -> Tensor:
        return x + self._block.crossattention.c_proj(read)  # type: ignore[no-any-return]

    def think(self, x: Tensor) -> Tensor:
        return x + self._block.mlp(self._block.ln_2(x))  # type: ignore[no-any-return]


class Gpt2Decoder:
    """`network` is a GPT2LMHeadModel, `into` the layer between encoder and decoder, if any."""

    joint = False

    def __init__(self, network: Any, into: nn.Module | None) -> None:
        self._body = network.transformer
        self._into = into
        self.heads = network.config.n_head
        self.layers = [_Gpt2Layer(block) for block in self._body.h]
        self.weight: Tensor = network.lm_head.weight
        self.bias: Tensor | None = None

    def embed(self, words: Tensor, times: Tensor) -> Tensor:
        return self._body.wte(words) + self._body.wpe(times)  # type: ignore[no-any-return]

    def images(self, seen: Tensor) -> Iterator[KeysAndValues]:
        return project_images(self.layers, self._into, seen, self.heads)

    def finish(self, x: Tensor) -> Tensor:
        return self._body.ln_f(x)  # type: ignore[no-any-return]
