"""Captioners that look at places of an image, one caption at a time.

Provenance: written from the papers' equations (Xu et al. 2015, eq. 1 to 9 and section 4.2.1; Lu et
al. 2017, eq. 3 to 13; Anderson et al. 2018, eq. 1 to 7; Vaswani et al. 2017) with torch's own
layers (LSTMCell, Linear, TransformerDecoder), independent of workers/. Float64, no batches, no kept
state: a decoder runs its whole prefix again at every step. `places` are those that are there: no
padding can have an influence.

What the papers leave open: without any place, what is read of them, and their mean, are zeros.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from helpers import plain_search
from oracles.captioner import END, search

Tensors = Mapping[str, Any]
Options = Mapping[str, Any]


def forward(
    architecture: str,
    tensors: Tensors,
    places: Any,
    words: Sequence[int],
    heads: int = 1,
    options: Options | None = None,
) -> np.ndarray:
    """Logits (len(words)+1, V): row t is what follows START and the first t words. `options`: those
    of the config that change what is computed; what is not there is as in the papers.
    """
    o = options or {}
    t = {name: torch.tensor(np.asarray(each)).double() for name, each in tensors.items()}
    a = torch.tensor(np.asarray(places)).double()
    lengths = a.norm(dim=1, keepdim=True)
    a = a / torch.where(lengths > 0, lengths, 1.0)
    x = t["embedding.weight"][[END, *words]]
    with torch.no_grad():
        if architecture == "transformer":
            u = _transformer(t, a, x, heads, o)
        else:
            u = _BY_NAME[architecture](t, a, x, o)
        return (u @ t["output.weight"] + t["output.bias"]).numpy()


def greedy(
    architecture: str,
    tensors: Tensors,
    places: Any,
    most: int,
    heads: int = 1,
    options: Options | None = None,
) -> list[int]:
    return plain_search.greedy(
        lambda words: forward(architecture, tensors, places, words, heads, options)[-1],
        END,
        least=0,
        most=most,
    )


def beam(
    architecture: str,
    tensors: Tensors,
    places: Any,
    width: int,
    least: int,
    most: int,
    heads: int = 1,
    options: Options | None = None,
) -> tuple[list[int], float]:
    return search(
        lambda words: forward(architecture, tensors, places, words, heads, options)[-1],
        width,
        least,
        most,
    )


def _linear(t: Tensors, name: str) -> nn.Linear:
    weight = t[f"{name}.weight"]
    layer = nn.Linear(*weight.shape, dtype=torch.float64)
    layer.weight.copy_(weight.T)
    layer.bias.copy_(t.get(f"{name}.bias", torch.zeros(weight.shape[1])))
    return layer


def _lstm(t: Tensors, name: str, inputs: int) -> nn.LSTMCell:
    weight = t[f"{name}.weight"]
    cell = nn.LSTMCell(inputs, weight.shape[1] // 4, dtype=torch.float64)
    cell.weight_ih.copy_(weight[:inputs].T)
    cell.weight_hh.copy_(weight[inputs:].T)
    cell.bias_ih.copy_(t[f"{name}.bias"])
    cell.bias_hh.zero_()
    return cell


def _mean(a: Tensor) -> Tensor:
    return a.mean(0) if len(a) else a.new_zeros(a.shape[1])


def _scores(t: Tensors, a: Tensor, h: Tensor, o: Options) -> Tensor:
    """Of each place a_i: w . tanh(W_a a_i + W_h h)."""
    key, query, bend = _linear(t, "key"), _linear(t, "query"), _bend(o)
    return torch.stack(
        [t["score.weight"] @ bend(key(a_i) + query(h)) for a_i in a] or [a.new_zeros(())]
    )[: len(a)]


def _bend(o: Options) -> nn.Module:
    return nn.ReLU() if o.get("scores") == "relu" else nn.Tanh()


def _read(a: Tensor, weights: Tensor) -> Tensor:
    total = a.new_zeros(a.shape[1])
    for weight, a_i in zip(weights, a, strict=True):
        total = total + weight * a_i
    return total


def _soft_attention(t: Tensors, a: Tensor, x: Tensor, o: Options) -> Tensor:
    lstm = _lstm(t, "gates", x.shape[1] + a.shape[1])
    begin = nn.Identity() if o.get("start") == "linear" else nn.Tanh()
    h = begin(_linear(t, "state")(_mean(a)))
    c = begin(_linear(t, "memory")(_mean(a)))
    rows = []
    for word in x:
        alpha = _scores(t, a, h, o).softmax(0)
        beta = torch.sigmoid(_linear(t, "gate")(h))
        if o.get("gate") == "each":
            assert beta.shape == (a.shape[1],)
        else:
            assert beta.shape == (1,)
        z = beta * _read(a, alpha)
        h, c = (each[0] for each in lstm(torch.cat([word, z])[None], (h[None], c[None])))
        if o.get("output") == "state":
            rows.append(h)
        else:
            rows.append(word + _linear(t, "deep")(torch.cat([h, z])))
    return torch.stack(rows)


def _adaptive_attention(t: Tensors, a: Tensor, x: Tensor, o: Options) -> Tensor:
    v = torch.relu(_linear(t, "places")(a)) if len(a) else a.new_zeros(0, _size(t, "places"))
    v_g = torch.relu(_linear(t, "image")(_mean(a)))
    lstm = _lstm(t, "gates", x.shape[1] + len(v_g))
    h, m = torch.zeros(2, lstm.hidden_size, dtype=torch.float64)
    rows = []
    for word in x:
        x_t = torch.cat([word, v_g])
        g = torch.sigmoid(_linear(t, "sentinel")(torch.cat([x_t, h])))
        h, m = (each[0] for each in lstm(x_t[None], (h[None], m[None])))
        s = g * torch.tanh(m)
        z = _scores(t, v, h, o)
        own = t["score.weight"] @ _bend(o)(_linear(t, "sentinel_key")(s) + _linear(t, "query")(h))
        beta = torch.cat([z, own[None]]).softmax(0)[-1]
        c = _read(v, z.softmax(0))
        rows.append(beta * s + (1 - beta) * c + h)
    return torch.stack(rows)


def _size(t: Tensors, name: str) -> int:
    return int(t[f"{name}.weight"].shape[1])


def _bottom_up_top_down(t: Tensors, a: Tensor, x: Tensor, o: Options) -> Tensor:
    size = len(t["output.weight"])
    whole = _mean(a)
    if o.get("places_size"):
        whole = torch.relu(_linear(t, "image")(whole))
        made = [torch.relu(_linear(t, "places")(a_i)) for a_i in a]
        a = torch.stack(made) if made else whole.new_zeros(0, len(whole))
    first = _lstm(t, "attention_gates", size + a.shape[1] + x.shape[1])
    second = _lstm(t, "language_gates", a.shape[1] + size)
    h1, c1, h2, c2 = torch.zeros(4, size, dtype=torch.float64)
    rows = []
    for word in x:
        x1 = torch.cat([h2, whole, word])
        h1, c1 = (each[0] for each in first(x1[None], (h1[None], c1[None])))
        read = _read(a, _scores(t, a, h1, o).softmax(0))
        x2 = torch.cat([read, h1])
        h2, c2 = (each[0] for each in second(x2[None], (h2[None], c2[None])))
        rows.append(h2)
    return torch.stack(rows)


def _transformer(t: Tensors, a: Tensor, x: Tensor, heads: int, o: Options) -> Tensor:
    """By torch's own decoder of layers that normalise afterwards. It knows no image without places:
    there, places of zeros stand for none, and their values' bias is taken away.
    """
    length, size = x.shape
    waves = torch.zeros(length, size, dtype=torch.float64)
    for at in range(length):
        for i in range(size):
            angle = at / 10_000 ** (2 * (i // 2) / size)
            waves[at, i] = math.cos(angle) if i % 2 else math.sin(angle)
    y = x * math.sqrt(size) + waves
    memory = _linear(t, "image")(a) if len(a) else torch.zeros(1, size, dtype=torch.float64)
    for number in range(sum(name.endswith("words.weight") for name in t)):
        named = {
            name.removeprefix(f"layers.{number}."): each
            for name, each in t.items()
            if name.startswith(f"layers.{number}.")
        }
        if not len(a):
            named["places.bias"] = torch.zeros_like(named["places.bias"])
        layer = _layer(named, size, heads, o)
        mask = nn.Transformer.generate_square_subsequent_mask(length, dtype=torch.float64)
        y = layer(y[None], memory[None], tgt_mask=mask)[0]
    if o.get("last_norm"):
        last = nn.LayerNorm(size, dtype=torch.float64)
        last.weight.copy_(t["norm.weight"])
        last.bias.copy_(t["norm.bias"])
        y = last(y)
    return y


def _layer(t: Tensors, size: int, heads: int, o: Options) -> nn.Module:
    layer = nn.TransformerDecoderLayer(
        size,
        heads,
        t["inner.weight"].shape[1],
        dropout=0.0,
        activation=o.get("activation", "relu"),
        batch_first=True,
        norm_first=o.get("norms") == "before",
        dtype=torch.float64,
    )
    layer.self_attn.in_proj_weight.copy_(t["words.weight"].T)
    layer.self_attn.in_proj_bias.copy_(t["words.bias"])
    layer.multihead_attn.in_proj_weight.copy_(
        torch.cat([t["query.weight"], t["places.weight"]], dim=1).T
    )
    layer.multihead_attn.in_proj_bias.copy_(torch.cat([t["query.bias"], t["places.bias"]]))
    for name, module in (
        ("words_out", layer.self_attn.out_proj),
        ("places_out", layer.multihead_attn.out_proj),
        ("inner", layer.linear1),
        ("outer", layer.linear2),
    ):
        module.weight.copy_(t[f"{name}.weight"].T)
        module.bias.copy_(t[f"{name}.bias"])
    for name, norm in (
        ("words", layer.norm1),
        ("places", layer.norm2),
        ("inner", layer.norm3),
    ):
        norm.weight.copy_(t[f"{name}_norm.weight"])
        norm.bias.copy_(t[f"{name}_norm.bias"])
    return layer.eval()


_BY_NAME = {
    "soft_attention": _soft_attention,
    "adaptive_attention": _adaptive_attention,
    "bottom_up_top_down": _bottom_up_top_down,
}
