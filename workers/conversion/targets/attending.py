"""`soft_attention`, `adaptive_attention` and `bottom_up_top_down`.

The bias of a query adds to that of what it is compared with, and the bias of a score to all scores,
so that no weight changes by it: it is read, and not kept.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from service.contract.errors import RequestRefused
from service.contract.formats.checkpoint_header import AnyConfig, AttentionConfig
from service.contract.formats.state_dicts.places import (
    AdaptiveMap,
    BottomUpMap,
    SoftMap,
)
from service.contract.formats.state_dicts.tables import listed
from workers.conversion import layers
from workers.conversion.layers import Affine, Floats, State
from workers.conversion.targets.made import Made, Source, configured, named

_OPEN = 100.0  # of a gate that is not there: the sigmoid of it is 1 exactly, in float64, too


def soft(source: Source, given: SoftMap) -> Made:
    state, names = source.state, given.layers
    embedding, output = source.embedding(names.embedding), source.output(names.output)
    first = layers.affine(state, listed(names.state))
    memory = layers.affine(state, listed(names.memory))
    seen, size, word = len(first.weight), len(first.bias), embedding.shape[1]
    key, attention = _attention(state, names.key, names.query, names.score)
    if names.gate is None:
        gate = Affine(np.zeros((size, 1)), np.full(1, _OPEN))
    else:
        gate = layers.linear(state, names.gate)
    widths = {"word": word, "context": seen}
    tensors = {
        **named("state", first),
        **named("memory", memory),
        **named("key", key),
        **attention,
        **named("gate", gate),
        **named("gates", _lstm(state, names.cell, given.order.cell, widths, ("word", "context"))),
        "embedding.weight": embedding,
        **named("output", output),
    }
    if names.deep is not None:
        deep = layers.linear(state, names.deep)
        widths = {"state": size, "context": seen}
        tensors |= named("deep", _in_order(names.deep, deep, given.order.deep, widths))
    config = _config(
        given,
        size,
        word,
        key,
        feature_size=seen,
        start=given.start,
        gate="one" if len(gate.bias) == 1 else "each",
        output="state" if names.deep is None else "deep",
    )
    return Made(config, tensors)


def adaptive(source: Source, given: AdaptiveMap) -> Made:
    state, names = source.state, given.layers
    embedding, output = source.embedding(names.embedding), source.output(names.output)
    places = layers.affine(state, listed(names.places))
    size, word = len(places.bias), embedding.shape[1]
    image = layers.affine(state, listed(names.image))
    short = size - len(image.bias)
    if short < 0:
        raise RequestRefused(
            f"map, layers.image: gives {len(image.bias)} numbers, and at most those of the state, "
            f"{size}, can be read (deploy/guide/checkpoints.md): take the way of ONNX "
            "(deploy/guide/onnx.md)"
        )
    key, attention = _attention(state, names.key, names.query, names.score)
    rival = layers.affine(state, listed(names.sentinel_key))
    asked = layers.linear(state, names.query)
    widths, order = {"word": word, "image": len(image.bias)}, given.order.cell
    cell = _lstm(state, names.cell, order, widths, ("word", "image"))
    read = _in_order(names.sentinel, layers.linear(state, names.sentinel), order, widths)
    kept = layers.linear(state, names.sentinel_state)
    sentinel = Affine(np.concatenate([read.weight, kept.weight]), read.bias + kept.bias)
    tensors = {
        **named("places", places),
        **named("image", _widened(image, short)),
        **named("key", key),
        **attention,
        **named("gates", _with_rows(cell, word + len(image.bias), short)),
        **named("sentinel", _with_rows(sentinel, word + len(image.bias), short)),
        **named("sentinel_key", Affine(rival.weight, rival.bias + asked.bias)),
        "embedding.weight": embedding,
        **named("output", output),
    }
    config = _config(
        given,
        size,
        word,
        key,
        feature_size=len(places.weight),
    )
    return Made(config, tensors)


def bottom_up(source: Source, given: BottomUpMap) -> Made:
    state, names = source.state, given.layers
    embedding, output = source.embedding(names.embedding), source.output(names.output)
    if given.embedded == "relu":
        embedding = np.maximum(embedding, 0)
    word, size = embedding.shape[1], len(output.weight)
    key, attention = _attention(state, names.key, names.query, names.score)
    made: dict[str, Floats] = {}
    seen = whole = features = len(key.weight)
    if names.places is not None and names.image is not None:
        places = layers.affine(state, listed(names.places))
        image = layers.affine(state, listed(names.image))
        made = {**named("places", places), **named("image", image)}
        seen, whole, features = len(places.bias), len(image.bias), len(places.weight)
    widths = {"state": size, "image": whole, "word": word}
    look = _lstm(state, names.look, given.order.look, widths, ("state", "image", "word"))
    widths = {"context": seen, "state": size}
    speak = _lstm(state, names.speak, given.order.speak, widths, ("context", "state"))
    if names.places_norm is not None:
        key, speak = _after_norm(state, names.places_norm, key, speak, seen)
    tensors = {
        **made,
        **named("attention_gates", look),
        **named("key", key),
        **attention,
        **named("language_gates", speak),
        "embedding.weight": embedding,
        **named("output", output),
    }
    config = _config(
        given,
        size,
        word,
        key,
        feature_size=features,
        places_size=seen if made else None,
    )
    return Made(config, tensors)


def _config(
    given: SoftMap | AdaptiveMap | BottomUpMap, size: int, word: int, key: Affine, **own: Any
) -> AnyConfig:
    """`own`: what is not the same of all three. A size that is the state's is not said."""
    attention = len(key.bias)
    return configured(
        lambda: AttentionConfig(
            inputs=given.inputs,
            size=size,
            embedding_size=None if word == size else word,
            attention_size=None if attention == size else attention,
            normalize=given.normalize,
            scores=given.scores,
            **own,
        )
    )


def _attention(
    state: State, key: str | list[str], query: str, score: str
) -> tuple[Affine, dict[str, Floats]]:
    """The layer of keys, with the query's bias, and the other tensors."""
    keys, asked, last = (
        layers.affine(state, listed(key)),
        layers.linear(state, query),
        layers.linear(state, score),
    )
    if len(last.bias) != 1:
        raise RequestRefused(
            f"{score!r:.100}: expected a Linear to one number, found one to {len(last.bias)}"
        )
    if len(asked.bias) != len(keys.bias):
        raise RequestRefused(
            f"{query!r:.100} gives {len(asked.bias)} numbers, and {key!r:.100} {len(keys.bias)}: "
            "the two are added"
        )
    tensors = {"query.weight": asked.weight, "score.weight": last.weight[:, 0]}
    return Affine(keys.weight, keys.bias + asked.bias), tensors


def _lstm(
    state: State,
    name: str,
    order: Sequence[str],
    widths: Mapping[str, int],
    ours: Sequence[str],
) -> Affine:
    """Gates of what is read, in our order, and of the state below it."""
    cell = layers.cell(state, name)
    if cell.kind != "lstm":
        raise RequestRefused(f"{name!r:.100}: expected an LSTM, found a GRU")
    read = _in_order(name, Affine(cell.given, cell.given_bias), order, widths, ours)
    return Affine(np.concatenate([read.weight, cell.state]), read.bias + cell.state_bias)


def _in_order(
    name: str,
    layer: Affine,
    order: Sequence[str],
    widths: Mapping[str, int],
    ours: Sequence[str] | None = None,
) -> Affine:
    """The layer with the rows of what it reads in our order."""
    expected = sum(widths.values())
    if len(layer.weight) != expected:
        parts = " + ".join(f"{each} {width}" for each, width in widths.items())
        raise RequestRefused(
            f"{name!r:.100}: reads {len(layer.weight)} numbers, and {expected} are needed ({parts})"
        )
    ends = np.cumsum([widths[each] for each in order])
    rows = dict(zip(order, np.split(layer.weight, ends[:-1]), strict=True))
    return Affine(np.concatenate([rows[each] for each in ours or widths]), layer.bias)


def _widened(layer: Affine, more: int) -> Affine:
    """With numbers that are zero, and stay zero after relu."""
    return Affine(np.pad(layer.weight, ((0, 0), (0, more))), np.pad(layer.bias, (0, more)))


def _with_rows(layer: Affine, at: int, more: int) -> Affine:
    """With rows for numbers that are zero."""
    zeros = np.zeros((more, layer.weight.shape[1]))
    return Affine(np.insert(layer.weight, [at] * more, zeros, axis=0), layer.bias)


def _after_norm(
    state: State, name: str, key: Affine, speak: Affine, seen: int
) -> tuple[Affine, Affine]:
    """What reads places, as if BatchNorm1d stood before it: of a weighted mean of places it makes
    the same as the weighted mean of what it makes of each.
    """
    norm = layers.affine(state, [name])
    if len(norm.bias) != seen:
        raise RequestRefused(f"{name!r:.100}: is of {len(norm.bias)} numbers, places have {seen}")
    read = norm.then(Affine(speak.weight[:seen], speak.bias))
    return norm.then(key), Affine(np.concatenate([read.weight, speak.weight[seen:]]), read.bias)
