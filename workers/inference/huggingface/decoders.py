"""Decoders of transformers' networks by layers: BERT, GIT, GPT-2, OPT, Gemma, Llama, Qwen2."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from workers.inference.huggingface import decoder_stack
from workers.inference.huggingface.captioner import Prompt
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


class _OptLayer(decoder_stack.LayerWithoutImage):
    def __init__(self, layer: Any) -> None:
        self._layer = layer

    def own(self, x: Tensor, _times: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        part, x = self._layer.self_attn, self._layer.self_attn_layer_norm(x)
        return part.q_proj(x), part.k_proj(x), part.v_proj(x)

    def after_own(self, x: Tensor, read: Tensor) -> Tensor:
        return x + self._layer.self_attn.out_proj(read)  # type: ignore[no-any-return]

    def think(self, x: Tensor) -> Tensor:
        inner = self._layer.fc1(self._layer.final_layer_norm(x))
        return x + self._layer.fc2(self._layer.activation_fn(inner))  # type: ignore[no-any-return]


class OptDecoder:
    """`network` is an OPTForCausalLM, `places` are those of a picture."""

    joint = True

    def __init__(self, network: Any, places: int) -> None:
        self._body = network.model.decoder
        self._places = places
        self.heads = network.config.num_attention_heads
        self.layers = [_OptLayer(layer) for layer in self._body.layers]
        self.weight: Tensor = network.lm_head.weight
        self.bias: Tensor | None = None

    def embed(self, words: Tensor, times: Tensor) -> Tensor:
        return self._placed(self._body.embed_tokens(words), times)

    def images(self, seen: Tensor) -> Iterator[KeysAndValues]:
        times = decoder_stack.count_prefix_times(self._places, seen.device)
        return decoder_stack.read_prefix(
            self.layers, self._placed(seen, times), self.heads, times, causal=True
        )

    def finish(self, x: Tensor) -> Tensor:
        return self._body.final_layer_norm(x)  # type: ignore[no-any-return]

    def _placed(self, x: Tensor, times: Tensor) -> Tensor:
        found: Tensor = self._body.embed_positions(None, position_ids=times + self._places)
        return x + found


class _RotaryLayer(decoder_stack.LayerWithoutImage):
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


class RotaryDecoder:
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
        self.layers = [_RotaryLayer(layer, turns, start) for layer in self._body.layers]

    def embed(self, words: Tensor, times: Tensor) -> Tensor:  # noqa: ARG002  layers turn them
        return self._body.embed_tokens(words)  # type: ignore[no-any-return]

    def images(self, seen: Tensor) -> Iterator[KeysAndValues]:
        """Keys and values before a caption, whose rows may read START too: it is the first word
        then.
        """
        ahead, after = (
            self._body.embed_tokens(ids).expand(len(seen), -1, -1)
            for ids in (self._before, self._after)
        )
        x = torch.cat([ahead, seen, after], dim=1)
        times = decoder_stack.count_prefix_times(x.shape[1], x.device) + 1
        for keys, values in decoder_stack.read_prefix(
            self.layers, x, self.heads, times, causal=self._causal
        ):
            yield keys[:, :, :-1], values[:, :, :-1]

    def finish(self, x: Tensor) -> Tensor:
        return self._body.norm(x)  # type: ignore[no-any-return]


def _turned(x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """(n, m, heads, size), each head's first half with its second."""
    first, second = x.chunk(2, dim=3)
    return x * cosine + torch.cat([-second, first], dim=3) * sine
