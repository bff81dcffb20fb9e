"""BLIP's encoder of pictures, with an attention that keeps no weights, as the library's does."""

from typing import Any

from torch import Tensor, nn
from torch.nn import functional


class _Attention(nn.Module):
    """In place of a BlipAttention."""

    def __init__(self, attention: Any) -> None:
        super().__init__()
        self.qkv, self.projection = attention.qkv, attention.projection
        self._heads: int = attention.num_heads

    def forward(self, hidden_states: Tensor, **_: Any) -> tuple[Tensor, None]:
        n, places, width = hidden_states.shape
        parts = self.qkv(hidden_states).view(n, places, 3, self._heads, -1)
        query, keys, values = parts.permute(2, 0, 3, 1, 4).unbind(0)
        read = functional.scaled_dot_product_attention(query, keys, values)
        return self.projection(read.transpose(1, 2).reshape(n, places, width)), None


def vision(model: Any) -> nn.Module:
    found: nn.Module = model.vision_model
    for layer in model.vision_model.encoder.layers:
        layer.self_attn = _Attention(layer.self_attn)
    return found
