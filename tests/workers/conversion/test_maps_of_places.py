"""Maps of models that look at places, beyond what public codes have: other orders, biases where a
checkpoint has one for two layers, layers that are left out. The other way round: of a captioner in
Prescore's own form, taken apart into torch's layers, the map has to make the same one.
"""

import json

import numpy as np
import pytest

from helpers import attending_models as small
from helpers.builders import encoded
from service.contract.errors import RequestRefused
from service.contract.formats import map_files
from workers.conversion import canonical_checkpoints
from workers.inference import scoring

RNG = np.random.default_rng(8)
REFERENCES = encoded([[[3, 4, 5], [2]], [[7, 9]], [[]]])
S, E, D, A = 8, 6, small.FEATURES, 7  # as attending_models has them
SPECIAL = {"start": "<edge>", "end": "<edge>", "unknown": "<unk>"}


def _parted(bias):
    """Two biases whose sum it is."""
    first = RNG.normal(size=bias.shape).astype(np.float32)
    return first, bias - first


def _linear(name, weight, bias):
    return {f"{name}.weight": weight.T, f"{name}.bias": bias}


def _lstm(name, weight, bias, inputs):
    given, kept = _parted(bias)
    return {
        f"{name}.weight_ih": weight[:inputs].T, f"{name}.weight_hh": weight[inputs:].T,
        f"{name}.bias_ih": given, f"{name}.bias_hh": kept,
    }  # fmt: skip


def _turned(weight, *widths):
    """Its rows, of parts of these widths, with the last part first."""
    return np.roll(weight[: sum(widths)], widths[-1], axis=0)


def _rows(top, weight):
    return np.concatenate([top, weight[len(top) :]])


def _text(architecture, layers, order=None, **lines):
    head = {"architecture": architecture, "inputs": "regions", "normalize": "l2", **lines}
    head |= {"tokenizer": "blanks"}
    tables = {"words": SPECIAL, "layers": layers, **({"order": order} if order else {})}
    told = [f"{name} = {json.dumps(value)}" for name, value in head.items()]
    for name, table in tables.items():
        told += [f"[{name}]", *(f"{key} = {json.dumps(value)}" for key, value in table.items())]
    return "\n".join(told)


def _same(of, tensors, state, text):
    """The map makes of this state dict a captioner with the same probabilities."""
    found = {name: np.ascontiguousarray(array, np.float32) for name, array in state.items()}
    made = canonical_checkpoints.convert_tensors(
        found, of.vocabulary, map_files.parse_map(text), of.encoder
    )
    assert made[0].config == of.config
    rows = small.regions([3, 1, 4])
    expected, ours = (
        scoring.compute_columns(small.model(one, arrays), rows, REFERENCES).logp
        for one, arrays in ((of, tensors), made)
    )
    assert expected.std() > 0.1
    np.testing.assert_allclose(ours, expected, atol=1e-5)


def _attention(tensors):
    """The layers that compare keys and queries: (name, tensors), and the bias of the query."""
    key, query = _parted(tensors["key.bias"])
    return query, {
        **_linear("k", tensors["key.weight"], key),
        **_linear("q", tensors["query.weight"], query),
        **_linear("s", tensors["score.weight"][:, None], np.ones(1)),  # changes no weight
    }


@pytest.mark.parametrize("gate", [True, False])
def test_soft_attention_as_the_paper_has_it(gate):
    """With what is looked at before the word, and before the state; without a gate."""
    of = small.description("soft_attention")
    tensors = small.arrays(of)
    if not gate:
        tensors |= {"gate.weight": np.zeros((S, 1), np.float32), "gate.bias": np.full(1, 1e3)}
        tensors["gate.bias"] = tensors["gate.bias"].astype(np.float32)
    cell = _rows(_turned(tensors["gates.weight"], E, D), tensors["gates.weight"])
    state = {
        **_attention(tensors)[1],
        **_linear("h", tensors["state.weight"], tensors["state.bias"]),
        **_linear("c", tensors["memory.weight"], tensors["memory.bias"]),
        **(_linear("g", tensors["gate.weight"], tensors["gate.bias"]) if gate else {}),
        **_lstm("cell", cell, tensors["gates.bias"], E + D),
        **_linear("deep", _turned(tensors["deep.weight"], S, D), tensors["deep.bias"]),
        "words.weight": tensors["embedding.weight"],
        **_linear("out", tensors["output.weight"], tensors["output.bias"]),
    }
    layers = {
        "embedding": "words", "state": "h", "memory": "c", "key": "k", "query": "q", "score": "s",
        **({"gate": "g"} if gate else {}), "cell": "cell", "deep": "deep", "output": "out",
    }  # fmt: skip
    order = {"cell": ["context", "word"], "deep": ["context", "state"]}
    text = _text("soft_attention", layers, order, scores="tanh", start="tanh")
    _same(of, tensors, state, text)


def test_adaptive_attention_with_a_bias_in_every_layer():
    of = small.description("adaptive_attention")
    tensors = small.arrays(of)
    query, attention = _attention(tensors)
    cell = _rows(_turned(tensors["gates.weight"], E, S), tensors["gates.weight"])
    read, kept = _parted(tensors["sentinel.bias"])
    state = {
        **attention,
        **_linear("v", tensors["places.weight"], tensors["places.bias"]),
        **_linear("w", tensors["image.weight"], tensors["image.bias"]),
        **_lstm("cell", cell, tensors["gates.bias"], E + S),
        **_linear("x", _turned(tensors["sentinel.weight"], E, S), read),
        **_linear("y", tensors["sentinel.weight"][E + S :], kept),
        **_linear("t", tensors["sentinel_key.weight"], tensors["sentinel_key.bias"] - query),
        "words.weight": tensors["embedding.weight"],
        **_linear("out", tensors["output.weight"], tensors["output.bias"]),
    }
    layers = {
        "embedding": "words", "places": "v", "image": "w", "key": "k", "query": "q", "score": "s",
        "cell": "cell", "sentinel": "x", "sentinel_state": "y", "sentinel_key": "t",
        "output": "out",
    }  # fmt: skip
    text = _text("adaptive_attention", layers, {"cell": ["image", "word"]}, scores="tanh")
    _same(of, tensors, state, text)


def test_bottom_up_top_down_that_looks_at_places_as_they_are():
    of = small.description("bottom_up_top_down", scores="relu")
    tensors = small.arrays(of)
    look, speak = tensors["attention_gates.weight"], tensors["language_gates.weight"]
    state = {
        **_attention(tensors)[1],
        **_lstm(
            "a", _rows(_turned(look, S, D, E), look), tensors["attention_gates.bias"], S + D + E
        ),
        **_lstm("b", _rows(_turned(speak, D, S), speak), tensors["language_gates.bias"], D + S),
        "words.weight": tensors["embedding.weight"],
        **_linear("out", tensors["output.weight"], tensors["output.bias"]),
    }
    layers = {
        "embedding": "words", "key": "k", "query": "q", "score": "s", "look": "a", "speak": "b",
        "output": "out",
    }  # fmt: skip
    order = {"look": ["word", "state", "image"], "speak": ["state", "context"]}
    text = _text("bottom_up_top_down", layers, order, scores="relu", embedded="linear")
    _same(of, tensors, state, text)


def test_a_stack_without_a_layer_of_the_image_and_without_biases():
    """Of layers with bias=False, whose norms have none either; the last layer is the embedding."""
    of = small.description("transformer", size=8, features=8)
    tensors = small.arrays(of)
    tensors |= {name: 0 * each for name, each in tensors.items() if name.endswith("bias")}
    tensors["image.weight"] = np.eye(8, dtype=np.float32)
    tensors["output.weight"] = tensors["embedding.weight"].T
    state = {"words.weight": tensors["embedding.weight"]}
    for at in (0, 1):
        theirs, own = f"dec.layers.{at}.", f"layers.{at}."
        weights = {name: tensors[f"{own}{name}.weight"] for name in ("query", "places")}
        both = np.concatenate([weights["query"], weights["places"]], axis=1)
        named = {
            "self_attn.in_proj_weight": tensors[f"{own}words.weight"].T,
            "self_attn.out_proj.weight": tensors[f"{own}words_out.weight"].T,
            "multihead_attn.in_proj_weight": both.T,
            "multihead_attn.out_proj.weight": tensors[f"{own}places_out.weight"].T,
            "linear1.weight": tensors[f"{own}inner.weight"].T,
            "linear2.weight": tensors[f"{own}outer.weight"].T,
            "norm1.weight": tensors[f"{own}words_norm.weight"],
            "norm2.weight": tensors[f"{own}places_norm.weight"],
            "norm3.weight": tensors[f"{own}inner_norm.weight"],
        }
        state |= {f"{theirs}{name}": each for name, each in named.items()}
    layers = {"embedding": "words", "decoder": "dec", "output": "words"}
    lines = {"heads": small.HEADS, "scale": "root", "norms": "after", "activation": "relu"}
    text = _text("transformer", layers, **lines)
    found = {name: np.ascontiguousarray(array) for name, array in state.items()}
    made = canonical_checkpoints.convert_tensors(
        found, of.vocabulary, map_files.parse_map(text), of.encoder
    )
    for name, array in tensors.items():
        np.testing.assert_allclose(made[1][name], array, atol=1e-6, err_msg=name)


SOFT = _text(
    "soft_attention",
    dict.fromkeys(("embedding", "state", "memory", "key", "query", "score", "cell", "output"), "x"),
    {"cell": ["word", "context"]},
    scores="tanh",
    start="tanh",
)
UP = _text(
    "bottom_up_top_down",
    dict.fromkeys(("embedding", "key", "query", "score", "look", "speak", "output"), "x"),
    embedded="relu",
)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SOFT.replace('scores = "tanh"\n', ""), "map, scores: expected a value"),
        (SOFT.replace('start = "tanh"', 'start = "relu"'), "map, start: expected 'tanh' or 'lin"),
        (SOFT.replace('"regions"', '"features"'), "map, inputs: expected 'grid' or 'regions'"),
        (SOFT.replace('["word", "context"]', '["word", "word"]'), "each of word, context once"),
        (SOFT.replace('score = "x"\n', ""), r"map, layers\.score: expected a value"),
        (SOFT.replace("soft_attention", "softer"), "map, architecture: expected init, .*softer"),
        (UP + '\nplaces = "x"', "expected `places` and `image`, or neither"),
        (UP + '\nplaces_norm = "x"', "expected `places` beside `places_norm`"),
        (UP + '\ngate = "x"', r"map, layers\.gate: unknown field"),
    ],
)
def test_a_map_that_is_none_is_refused_with_its_place(text, told):
    with pytest.raises(RequestRefused, match=told):
        map_files.parse_map(text)
