"""Headers of checkpoints that look at places of an image."""

import io
import json

import pytest

from helpers.contract_files import ENCODER, laid_out, refused, safetensors_file
from service.contract.errors import ConfigInvalid, TensorMismatch
from service.contract.formats import architectures, checkpoint_header

WORDS = ["<edge>", "<unk>", "a"]
S, E, A, D, F, V = 4, 3, 5, 6, 7, len(WORDS)
ATTENTION = {
    "inputs": "grid", "size": S, "embedding_size": E, "attention_size": A, "feature_size": D,
}  # fmt: skip
STACK = {
    "inputs": "regions", "size": S, "layers": 2, "heads": 2, "inner_size": F, "feature_size": D,
}  # fmt: skip


def _affine(name, given, out):
    return {f"{name}.weight": (given, out), f"{name}.bias": (out,)}


def _of_layer(number):
    """The rows of the table in deploy/guide/file-formats.md, a second time."""
    names = {
        **_affine("words", S, 3 * S), **_affine("words_out", S, S), **_affine("query", S, S),
        **_affine("places", S, 2 * S), **_affine("places_out", S, S),
        **_affine("inner", S, F), **_affine("outer", F, S),
    }  # fmt: skip
    for name in ("words", "places", "inner"):
        names |= {f"{name}_norm.weight": (S,), f"{name}_norm.bias": (S,)}
    return {f"layers.{number}.{name}": shape for name, shape in names.items()}


COMMON = {"embedding.weight": (V, E), "output.bias": (V,), "query.weight": (S, A)}
COMMON |= {"score.weight": (A,)}
TENSORS = {
    "soft_attention": {
        **COMMON, **_affine("key", D, A), **_affine("state", D, S), **_affine("memory", D, S),
        **_affine("gate", S, 1), **_affine("gates", E + D + S, 4 * S), **_affine("deep", S + D, E),
        "output.weight": (E, V),
    },
    "adaptive_attention": {
        **COMMON, **_affine("key", S, A), **_affine("places", D, S), **_affine("image", D, S),
        **_affine("gates", E + 2 * S, 4 * S), **_affine("sentinel", E + 2 * S, S),
        **_affine("sentinel_key", S, A), "output.weight": (S, V),
    },
    "bottom_up_top_down": {
        **COMMON, **_affine("key", D, A), **_affine("attention_gates", S + D + E + S, 4 * S),
        **_affine("language_gates", D + 2 * S, 4 * S), "output.weight": (S, V),
    },
    "transformer": {
        **_affine("image", D, S), "embedding.weight": (V, S), **_of_layer(0), **_of_layer(1),
        "output.weight": (S, V), "output.bias": (V,),
    },
}  # fmt: skip


# Options that change names or shapes: what is other than above.
OPTIONS = [
    ("soft_attention", {"gate": "each"}, _affine("gate", S, D)),
    ("soft_attention", {"output": "state"},
     {"output.weight": (S, V), "deep.weight": None, "deep.bias": None}),
    ("soft_attention", {"scores": "relu", "start": "linear"}, {}),
    ("adaptive_attention", {"scores": "relu"}, {}),
    ("bottom_up_top_down", {"places_size": 9}, {
        **_affine("places", D, 9), **_affine("image", D, 9), **_affine("key", 9, A),
        **_affine("attention_gates", S + 9 + E + S, 4 * S),
        **_affine("language_gates", 9 + 2 * S, 4 * S),
    }),
    ("transformer", {"last_norm": True}, {"norm.weight": (S,), "norm.bias": (S,)}),
    ("transformer", {"norms": "before", "activation": "gelu"}, {}),
]  # fmt: skip


def _judged(architecture, config=None, tensors=None):
    usual = STACK if architecture == "transformer" else ATTENTION
    shapes = TENSORS[architecture] if tensors is None else tensors
    header, data = laid_out({name: ("F32", shape) for name, shape in shapes.items()})
    header["__metadata__"] = {
        "prescore": "1",
        "architecture": architecture,
        "config": json.dumps({**usual, **(config or {})}),
        "vocabulary": json.dumps(WORDS),
        "tokenizer": "blanks",
        "encoder": ENCODER,
    }
    content = safetensors_file(header, data)
    return checkpoint_header.parse_checkpoint_header(io.BytesIO(content), len(content))


@pytest.mark.parametrize("architecture", TENSORS)
def test_exactly_the_tensors_of_the_guide_are_taken(architecture):
    found = _judged(architecture)
    assert {name: entry.shape for name, entry in found.tensors.items()} == TENSORS[architecture]
    assert found.description.config.inputs in ("grid", "regions")
    for name, shape in TENSORS[architecture].items():
        others = {**TENSORS[architecture], name: (*shape[:-1], shape[-1] + 1)}
        refused(lambda others=others: _judged(architecture, tensors=others), TensorMismatch, name)
        left = {other: shape for other, shape in others.items() if other != name}
        refused(lambda left=left: _judged(architecture, tensors=left), TensorMismatch, name)


@pytest.mark.parametrize(("architecture", "config", "changed"), OPTIONS)
def test_an_option_has_the_tensors_of_the_guide(architecture, config, changed):
    wanted = {n: shape for n, shape in {**TENSORS[architecture], **changed}.items() if shape}
    found = _judged(architecture, config, wanted)
    assert {name: entry.shape for name, entry in found.tensors.items()} == wanted
    if changed:
        refused(lambda: _judged(architecture, config), TensorMismatch)
        refused(lambda: _judged(architecture, None, wanted), TensorMismatch)


@pytest.mark.parametrize(
    ("architecture", "config", "words"),
    [
        ("soft_attention", {"inputs": "features"}, ("config/inputs", "'grid' or 'regions'")),
        ("bottom_up_top_down", {"size": 16_385}, ("config/size", "at most 16384")),
        ("transformer", {"layers": 13}, ("config/layers", "at most 12, found 13")),
        ("transformer", {"heads": 3}, ("expected a size that 3 heads divide, found size 4",)),
        ("soft_attention", {"scores": "gelu"}, ("config/scores", "'tanh' or 'relu'")),
        ("soft_attention", {"places_size": 3}, ("config/places_size", "an option of bottom_up_")),
        ("bottom_up_top_down", {"gate": "each"}, ("config/gate", "an option of soft_attention")),
        ("adaptive_attention", {"start": "linear"}, ("config/start", "an option of soft_att")),
    ],
)
def test_a_wrong_config_is_refused_with_its_place(architecture, config, words):
    refused(lambda: _judged(architecture, config), ConfigInvalid, *words)


def test_sizes_that_are_left_out_are_those_of_the_state():
    config = architectures.AttentionConfig(inputs="grid", size=4, feature_size=2)
    assert (config.embedded, config.attended) == (4, 4)
    sizes = {"inputs": "grid", "size": 4, "layers": 1, "heads": 1, "feature_size": 2}
    assert architectures.TransformerConfig(**sizes).inner == 16
