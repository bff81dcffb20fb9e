"""Captioners with recurrent cells, made by a map: `init` to `merge`, and those with attention.

The bias of a query adds to that of what it is compared with, and the bias of a score to all scores,
so that no weight changes by it: it is read, and not kept.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from service.contract.errors import RequestRefused
from service.contract.formats import architectures
from service.contract.formats.architectures import AnyConfig, AttentionConfig, RecurrentConfig
from service.contract.formats.map_files import (
    AdaptiveMap,
    BottomUpMap,
    RecurrentMap,
    SoftMap,
)
from workers.conversion import layers
from workers.conversion.layers import (
    Affine,
    CellWeights,
    ConvertedCaptioner,
    Floats,
    ModelTensors,
    SourceModel,
    build_config,
    name_layers,
)

_OPEN = 100.0  # of a gate that is not there: the sigmoid of it is 1 exactly, in float64, too


def make_soft_attention(source: SourceModel, given: SoftMap) -> ConvertedCaptioner:
    state, names = source.state, given.layers
    embedding, output = source.embedding(names.embedding), source.output(names.output)
    first, memory = (layers.read_affine(state, each) for each in (names.state, names.memory))
    seen, size, word = len(first.weight), len(first.bias), embedding.shape[1]
    key, attention = _attention(state, names.key, names.query, names.score)
    if names.gate is None:
        gate = Affine(np.zeros((size, 1)), np.full(1, _OPEN))
    else:
        gate = layers.read_linear(state, names.gate)
    widths = {"word": word, "context": seen}
    gates = _lstm(state, names.cell, given.order.cell, widths)
    tensors = {
        **name_layers(state=first, memory=memory, key=key, gate=gate, gates=gates, output=output),
        **attention,
        "embedding.weight": embedding,
    }
    if names.deep is not None:
        deep = layers.read_linear(state, names.deep)
        widths = {"state": size, "context": seen}
        tensors |= name_layers(deep=_in_order(names.deep, deep, given.order.deep, widths))
    config = _attention_config(
        given,
        size,
        word,
        key,
        feature_size=seen,
        start=given.start,
        gate="one" if len(gate.bias) == 1 else "each",
        output="state" if names.deep is None else "deep",
    )
    return ConvertedCaptioner(config, tensors)


def make_adaptive_attention(source: SourceModel, given: AdaptiveMap) -> ConvertedCaptioner:
    state, names = source.state, given.layers
    embedding, output = source.embedding(names.embedding), source.output(names.output)
    places = layers.read_affine(state, names.places)
    size, word = len(places.bias), embedding.shape[1]
    image = layers.read_affine(state, names.image)
    short = size - len(image.bias)
    if short < 0:
        raise RequestRefused(
            f"map, layers.image: gives {len(image.bias)} numbers, and at most those of the state, "
            f"{size}, can be read (deploy/guide/file-formats.md): use an ONNX bundle "
            "(deploy/guide/bring-a-model.md)"
        )
    key, attention = _attention(state, names.key, names.query, names.score)
    rival = layers.read_affine(state, names.sentinel_key)
    asked = layers.read_linear(state, names.query)
    widths, order = {"word": word, "image": len(image.bias)}, given.order.cell
    cell = _lstm(state, names.cell, order, widths)
    read = _in_order(names.sentinel, layers.read_linear(state, names.sentinel), order, widths)
    kept = layers.read_linear(state, names.sentinel_state)
    sentinel = Affine(np.concatenate([read.weight, kept.weight]), read.bias + kept.bias)
    tensors = {
        **name_layers(
            places=places,
            image=_widened(image, short),
            key=key,
            gates=_with_rows(cell, word + len(image.bias), short),
            sentinel=_with_rows(sentinel, word + len(image.bias), short),
            sentinel_key=Affine(rival.weight, rival.bias + asked.bias),
            output=output,
        ),
        **attention,
        "embedding.weight": embedding,
    }
    config = _attention_config(given, size, word, key, feature_size=len(places.weight))
    return ConvertedCaptioner(config, tensors)


def make_bottom_up_top_down(source: SourceModel, given: BottomUpMap) -> ConvertedCaptioner:
    state, names = source.state, given.layers
    embedding, output = source.embedding(names.embedding), source.output(names.output)
    if given.embedded == "relu":
        embedding = np.maximum(embedding, 0)
    word, size = embedding.shape[1], len(output.weight)
    key, attention = _attention(state, names.key, names.query, names.score)
    made: dict[str, Floats] = {}
    seen = whole = features = len(key.weight)
    if names.places is not None and names.image is not None:
        places, image = (layers.read_affine(state, each) for each in (names.places, names.image))
        made = name_layers(places=places, image=image)
        seen, whole, features = len(places.bias), len(image.bias), len(places.weight)
    widths = {"state": size, "image": whole, "word": word}
    look = _lstm(state, names.look, given.order.look, widths)
    widths = {"context": seen, "state": size}
    speak = _lstm(state, names.speak, given.order.speak, widths)
    if names.places_norm is not None:
        key, speak = _after_norm(state, names.places_norm, key, speak, seen)
    tensors = {
        **made,
        **name_layers(attention_gates=look, key=key, language_gates=speak, output=output),
        **attention,
        "embedding.weight": embedding,
    }
    places_size = seen if made else None
    config = _attention_config(
        given, size, word, key, feature_size=features, places_size=places_size
    )
    return ConvertedCaptioner(config, tensors)


def _attention_config(
    given: SoftMap | AdaptiveMap | BottomUpMap, size: int, word: int, key: Affine, **own: Any
) -> AnyConfig:
    """Config of attention; `own`: fields that differ by kind. A size that is the state's is left
    out.
    """
    attention = len(key.bias)
    return build_config(
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
    state: ModelTensors, key: str | list[str], query: str, score: str
) -> tuple[Affine, dict[str, Floats]]:
    """The layer of keys, with the query's bias, and the other tensors."""
    keys = layers.read_affine(state, key)
    asked, last = (layers.read_linear(state, each) for each in (query, score))
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
    state: ModelTensors, name: str, order: Sequence[str], widths: Mapping[str, int]
) -> Affine:
    """Gates of what is read, in our order, and of the state below it."""
    cell = layers.read_cell(state, name)
    if cell.kind != "lstm":
        raise RequestRefused(f"{name!r:.100}: expected an LSTM, found a GRU")
    read = _in_order(name, Affine(cell.given, cell.given_bias), order, widths)
    return Affine(np.concatenate([read.weight, cell.state]), read.bias + cell.state_bias)


def _in_order(name: str, layer: Affine, order: Sequence[str], widths: Mapping[str, int]) -> Affine:
    """The layer with the rows of what it reads in our order, which is that of `widths`."""
    expected = sum(widths.values())
    if len(layer.weight) != expected:
        parts = " + ".join(f"{each} {width}" for each, width in widths.items())
        raise RequestRefused(
            f"{name!r:.100}: reads {len(layer.weight)} numbers, and {expected} are needed ({parts})"
        )
    ends = np.cumsum([widths[each] for each in order])
    rows = dict(zip(order, np.split(layer.weight, ends[:-1]), strict=True))
    return Affine(np.concatenate([rows[each] for each in widths]), layer.bias)


def _widened(layer: Affine, more: int) -> Affine:
    """Widen a layer's output by numbers that are zero, and stay zero after relu."""
    return Affine(np.pad(layer.weight, ((0, 0), (0, more))), np.pad(layer.bias, (0, more)))


def _with_rows(layer: Affine, at: int, more: int) -> Affine:
    """Insert rows into a layer for inputs that are zero."""
    zeros = np.zeros((more, layer.weight.shape[1]))
    return Affine(np.insert(layer.weight, [at] * more, zeros, axis=0), layer.bias)


def _after_norm(
    state: ModelTensors, name: str, key: Affine, speak: Affine, seen: int
) -> tuple[Affine, Affine]:
    """Fold a BatchNorm1d into the layers that read places: it commutes with a weighted mean of
    them.
    """
    norm = layers.read_affine(state, name)
    if len(norm.bias) != seen:
        raise RequestRefused(f"{name!r:.100}: is of {len(norm.bias)} numbers, places have {seen}")
    read = norm.then(Affine(speak.weight[:seen], speak.bias))
    return norm.then(key), Affine(np.concatenate([read.weight, speak.weight[seen:]]), read.bias)


def make_recurrent(source: SourceModel, given: RecurrentMap) -> ConvertedCaptioner:
    state = source.state
    image = layers.read_affine(state, given.images)
    cell = layers.read_cell(state, given.layers.cell)
    embedding = source.embedding(given.layers.embedding)
    output = source.output(given.layers.output)
    tensors = {
        **name_layers(image=image, output=_output(given, output, image)),
        "embedding.weight": embedding,
        **_initial(given, state, cell),
        **_cell(given, cell, image),
    }
    return ConvertedCaptioner(
        build_config(lambda: _recurrent_config(given, image, cell, embedding)), tensors
    )


def _recurrent_config(
    given: RecurrentMap, image: Affine, cell: CellWeights, embedding: Floats
) -> RecurrentConfig:
    embedded, seen = embedding.shape[1], len(image.bias)
    own = given.architecture in architectures.WITH_IMAGE_SIZE and seen != cell.size
    return RecurrentConfig(
        cell=cell.kind,
        size=cell.size,
        embedding_size=None if embedded == cell.size else embedded,
        image_size=seen if own else None,
        feature_size=len(image.weight),
        normalize=given.normalize,
    )


def _output(given: RecurrentMap, output: Affine, image: Affine) -> Affine:
    if given.architecture == "merge" and given.order.output[0] == "state":
        return Affine(np.roll(output.weight, len(image.bias), axis=0), output.bias)
    return output


def _initial(given: RecurrentMap, state: ModelTensors, cell: CellWeights) -> dict[str, Floats]:
    if given.architecture not in architectures.WITH_IMAGE_SIZE:
        return {}
    name = given.layers.initial
    if name is None:
        return {"initial": np.zeros(cell.size)}
    found = state.arrays.get(name)
    dimensions = 1 if found is None else found.ndim
    return {"initial": state.tensor(name, dimensions).reshape(-1)}


def _cell(given: RecurrentMap, cell: CellWeights, image: Affine) -> dict[str, Floats]:
    above = cell.given
    if given.architecture == "par" and given.order.cell[0] == "word":
        above = np.roll(above, len(image.bias), axis=0)
    rows, bias, at = np.concatenate([above, cell.state]), cell.given_bias, 2 * cell.size
    if cell.kind == "lstm":
        return {"gates.weight": rows, "gates.bias": bias + cell.state_bias}
    return {
        "gates.weight": rows[:, :at],
        "gates.bias": (bias + cell.state_bias)[:at],
        "candidate.weight": rows[:, at:],
        "candidate.bias": bias[at:],
        "candidate.state_bias": cell.state_bias[at:],
    }
