"""GPT-2 with cross-attention, as transformers' VisionEncoderDecoderModel uses it."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor, nn

from workers.inference.huggingface.stack import Pair, looked_at


class _Layer:
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


class Gpt2:
    """`network` is a GPT2LMHeadModel, `into` the layer between encoder and decoder, if any."""

    joint = False

    def __init__(self, network: Any, into: nn.Module | None) -> None:
        self._body = network.transformer
        self._into = into
        self.heads = network.config.n_head
        self.layers = [_Layer(block) for block in self._body.h]
        self.weight: Tensor = network.lm_head.weight
        self.bias: Tensor | None = None

    def embed(self, words: Tensor, times: Tensor) -> Tensor:
        return self._body.wte(words) + self._body.wpe(times)  # type: ignore[no-any-return]

    def images(self, seen: Tensor) -> Iterator[Pair]:
        return looked_at(self.layers, self._into, seen, self.heads)

    def finish(self, x: Tensor) -> Tensor:
        return self._body.ln_f(x)  # type: ignore[no-any-return]
