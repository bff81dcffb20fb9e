"""OPT, in whose first places BLIP-2 puts what its Q-Former has read of a picture."""

from collections.abc import Iterator
from typing import Any

from torch import Tensor

from workers.inference.huggingface import before
from workers.inference.huggingface.captioner import Parts
from workers.inference.huggingface.packed import pack_layers
from workers.inference.huggingface.stack import Pair


class _Layer(before.Blind):
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


class Opt:
    """`network` is an OPTForCausalLM, `places` are those of a picture."""

    joint = True

    def __init__(self, network: Any, places: int) -> None:
        self._body = network.model.decoder
        self._places = places
        self.heads = network.config.num_attention_heads
        self.layers = [_Layer(layer) for layer in self._body.layers]
        self.weight: Tensor = network.lm_head.weight
        self.bias: Tensor | None = None

    def embed(self, words: Tensor, times: Tensor) -> Tensor:
        return self._placed(self._body.embed_tokens(words), times)

    def images(self, seen: Tensor) -> Iterator[Pair]:
        times = before.times_of(self._places, seen.device)
        return before.read(self.layers, self._placed(seen, times), self.heads, times, causal=True)

    def finish(self, x: Tensor) -> Tensor:
        return self._body.final_layer_norm(x)  # type: ignore[no-any-return]

    def _placed(self, x: Tensor, times: Tensor) -> Tensor:
        found: Tensor = self._body.embed_positions(None, position_ids=times + self._places)
        return x + found


def blip2(model: Any) -> Parts:
    """Of a Blip2ForConditionalGeneration."""
    network = model.language_model
    pack_layers(model, network.lm_head)
    return Parts(before.Projected(model), Opt(network, model.config.num_query_tokens))
