"""Decoders whose heads are turned by their positions: Gemma, Llama, Qwen2. PaliGemma and LLaVA put
pictures and prompts in their first places.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from workers.inference.huggingface import before
from workers.inference.huggingface.captioner import Parts
from workers.inference.huggingface.packed import pack_layers
from workers.inference.huggingface.prompts import Prompt
from workers.inference.huggingface.stack import Pair


class _Layer(before.Blind):
    def __init__(self, layer: Any, turns: Any, start: int) -> None:
        """`start`: the position of START."""
        self._layer = layer
        self._turns = turns
        self._start = start

    def own(self, x: Tensor, times: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        part, x = self._layer.self_attn, self._layer.input_layernorm(x)
        query, keys, values = (
            each(x).unflatten(2, (-1, part.head_dim))
            for each in (part.q_proj, part.k_proj, part.v_proj)
        )
        turns = [each[:, :, None] for each in self._turns(x, times + self._start)]
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


class Rotary:
    """`model` is a network of the library with a `lm_head`, `first` the position of what stands
    first.
    """

    joint = True

    def __init__(self, model: Any, prompt: Prompt, *, causal: bool, first: int = 0) -> None:
        self._body = model.model.language_model
        self.weight: Tensor = model.lm_head.weight
        self.bias: Tensor | None = None
        device = self.weight.device
        self._before, self._after = (
            torch.tensor(ids, dtype=torch.long, device=device)
            for ids in (prompt.before, prompt.after)
        )
        self._causal = causal
        self.heads = self._body.config.num_attention_heads
        start = first + len(prompt.before) + prompt.picture + len(prompt.after) - 1
        turns = self._body.rotary_emb
        self.layers = [_Layer(layer, turns, start) for layer in self._body.layers]

    def embed(self, words: Tensor, times: Tensor) -> Tensor:  # noqa: ARG002  layers turn them
        return self._body.embed_tokens(words)  # type: ignore[no-any-return]

    def images(self, seen: Tensor) -> Iterator[Pair]:
        """What stands before a caption may read START too, which is the first of the words then."""
        ahead, after = (
            self._body.embed_tokens(ids).expand(len(seen), -1, -1)
            for ids in (self._before, self._after)
        )
        x = torch.cat([ahead, seen, after], dim=1)
        times = before.times_of(x.shape[1], x.device) + 1
        for keys, values in before.read(self.layers, x, self.heads, times, causal=self._causal):
            yield keys[:, :, :-1], values[:, :, :-1]

    def finish(self, x: Tensor) -> Tensor:
        return self._body.norm(x)  # type: ignore[no-any-return]


def _turned(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """(n, m, heads, size), each head's first half with its second."""
    first, second = x.chunk(2, dim=3)
    return x * cosine + torch.cat([-second, first], dim=3) * sine


def paligemma(model: Any, prompt: Prompt) -> Parts:
    """Of a PaliGemmaForConditionalGeneration, whose first position is 1."""
    pack_layers(model, model.lm_head)
    return Parts(before.Projected(model), Rotary(model, prompt, causal=False, first=1))


def llava(model: Any, prompt: Prompt) -> Parts:
    """Of a LlavaForConditionalGeneration."""
    pack_layers(model, model.lm_head)
    return Parts(before.Projected(model), Rotary(model, prompt, causal=True))
