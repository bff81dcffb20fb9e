"""Gemma, in whose first places PaliGemma puts a picture and a prompt."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from workers.inference.huggingface import before
from workers.inference.huggingface.captioner import Parts
from workers.inference.huggingface.packed import pack_layers
from workers.inference.huggingface.stack import Pair

_FIRST = 1  # the position of what stands first


class _Layer(before.Blind):
    def __init__(self, layer: Any, turns: Any, places: int) -> None:
        self._layer = layer
        self._turns = turns
        self._places = places

    def own(self, x: Tensor, times: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        part, x = self._layer.self_attn, self._layer.input_layernorm(x)
        query, keys, values = (
            each(x).unflatten(2, (-1, part.head_dim))
            for each in (part.q_proj, part.k_proj, part.v_proj)
        )
        turns = [each[:, :, None] for each in self._turns(x, times + self._places + _FIRST)]
        shared = part.num_key_value_groups  # heads that read the same keys
        found = (
            _turned(query, *turns),
            _turned(keys, *turns).repeat_interleave(shared, dim=2),
            values.repeat_interleave(shared, dim=2),
        )
        query, keys, values = (each.flatten(2) for each in found)
        return query, keys, values

    def after_own(self, x: Tensor, read: Tensor) -> Tensor:
        return x + self._layer.self_attn.o_proj(read)  # type: ignore[no-any-return]

    def think(self, x: Tensor) -> Tensor:
        return x + self._layer.mlp(self._layer.post_attention_layernorm(x))  # type: ignore[no-any-return]


class Gemma:
    """`network` is a GemmaModel, `places` are those of a picture, `prompt` are ids of what follows
    it, START last.
    """

    joint = True

    def __init__(self, network: Any, output: nn.Linear, places: int, prompt: Sequence[int]) -> None:
        self._body = network
        self._prompt = torch.tensor(prompt, device=output.weight.device)
        self.heads = network.config.num_attention_heads
        places += len(prompt) - 1
        self.layers = [_Layer(layer, network.rotary_emb, places) for layer in network.layers]
        self.weight: Tensor = output.weight
        self.bias: Tensor | None = None

    def embed(self, words: Tensor, times: Tensor) -> Tensor:  # noqa: ARG002  layers turn them
        return self._body.embed_tokens(words)  # type: ignore[no-any-return]

    def images(self, seen: Tensor) -> Iterator[Pair]:
        """What stands before a caption reads START too, which is the first of the words then."""
        text = self._body.embed_tokens(self._prompt).expand(len(seen), -1, -1)
        x = torch.cat([seen, text], dim=1)
        times = before.times_of(x.shape[1], x.device) + 1
        for keys, values in before.read(self.layers, x, self.heads, times):
            yield keys[:, :, :-1], values[:, :, :-1]

    def finish(self, x: Tensor) -> Tensor:
        return self._body.norm(x)  # type: ignore[no-any-return]


def _turned(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """(n, m, heads, size), each head's first half with its second."""
    first, second = x.chunk(2, dim=3)
    return x * cosine + torch.cat([-second, first], dim=3) * sine


def paligemma(model: Any, prompt: Sequence[int]) -> Parts:
    """Of a PaliGemmaForConditionalGeneration."""
    pack_layers(model, model.lm_head)
    places = model.config.text_config.num_image_tokens
    return Parts(
        before.Projected(model), Gemma(model.model.language_model, model.lm_head, places, prompt)
    )
