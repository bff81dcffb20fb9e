"""Adapters on a base that stays open. Oracles: the library's own network with hooks that add
scale · B(A(x)) to its layers; and a folder into which the test has merged the weights itself.
"""

import re
import shutil
from copy import deepcopy

import numpy as np
import pytest
import torch
from PIL import Image

from helpers import adapter_folders, huggingface_folders, synthetic_pictures
from helpers import vision_language_folders as folders
from service.contract.errors import InvalidCheckpoint, UnusableCheckpoint
from workers.inference import checkpoints, scoring
from workers.inference.huggingface.adapters import AdaptedBase

IMAGES = 4
SCALE = 5 / 3
_TEXT = {  # outputs and inputs of layers, by the names of the library's network
    "model.language_model.layers.0.self_attn.q_proj": (32, 32),
    "model.language_model.layers.1.self_attn.v_proj": (16, 32),
    "model.language_model.layers.1.mlp.down_proj": (32, 48),
}
LLAVA = {
    **_TEXT,
    "model.language_model.embed_tokens": (32, 348),
    "model.vision_tower.encoder.layers.0.self_attn.q_proj": (16, 16),
    "model.multi_modal_projector.linear_2": (32, 32),
    "lm_head": (348, 32),
}
QWEN = {**_TEXT, "model.visual.blocks.0.attn.qkv": (48, 16), "lm_head": (351, 32)}
GPT2 = {  # some of which have turned weights, and one of these is square
    "decoder.transformer.h.0.attn.c_attn": (72, 24),
    "decoder.transformer.h.1.attn.c_proj": (24, 24),
    "encoder.layers.1.attention.v_proj": (32, 32),
}
EACH = [
    ("llava", LLAVA),
    ("vit-gpt2", GPT2),
    pytest.param("qwen2_5_vl", QWEN, marks=pytest.mark.slow),
]
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.usefixtures("processors_here"),
]


def _name_as_stored(layer):
    """As older versions of the library called it, and files still do."""
    name = layer.removeprefix("model.").replace("language_model.", "language_model.model.")
    name = name.replace("encoder.layers.1.attention.v_proj", OLD_VIT)
    return {"lm_head": "language_model.lm_head"}.get(name, name)


OLD_VIT = "encoder.encoder.layer.1.attention.attention.value"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Folders of models, their networks in the library, and a bundle with pictures."""
    found = {"bundle": tmp_path_factory.mktemp("bundle")}
    found["names"] = synthetic_pictures.write_pictures(
        found["bundle"], synthetic_pictures.pictures(IMAGES)
    )

    def make(kind):
        if kind not in found:
            folder = tmp_path_factory.mktemp("made") / kind
            if kind == "vit-gpt2":
                found[kind] = huggingface_folders.make(folder, kind, trained=False)
            else:
                found[kind] = folders.save_model(folder, kind)
        return found[kind]

    make.found, make.bases, make.merged = found, {}, {}
    return make


def _base(made, kind):
    """The base of a kind that stays open for all tests, as a worker's does."""
    if kind not in made.bases:
        made.bases[kind] = _open(made, kind)
    return made.bases[kind]


def _open(made, kind):
    return AdaptedBase(checkpoints.open_captioner(made(kind).folder))


def _score(made, model):
    references = model.tokens.encode(synthetic_pictures.sentences(IMAGES))
    inputs = model.inputs(made.found["bundle"], made.found["names"])
    return scoring.compute_columns(model, inputs, references)


def _score_merged(made, kind, tmp_path, changes):
    """The columns of a folder whose tensors have these changes, by the names in the library."""
    one = made(kind)
    copy = shutil.copytree(one.folder, tmp_path / "merged")
    network = deepcopy(one.library if kind == "vit-gpt2" else one.model)
    with torch.no_grad():
        for name, change in changes.items():
            tensor = network.get_parameter(name)
            tensor.copy_(change(tensor))
    network.save_pretrained(copy)
    return _score(made, checkpoints.open_captioner(copy))


def _merge(layer, a, b):
    product = SCALE * (b @ a)
    return lambda own: own + (product.t() if re.search("embed|h[.]", layer) else product)


def _name_inside(layer):
    """As an adapter of the language model alone calls it."""
    return layer.replace("model.language_model.layers", "model.layers")


@pytest.mark.parametrize("rename", [str, _name_as_stored, _name_inside])
@pytest.mark.parametrize(("kind", "layers"), EACH)
def test_it_scores_as_the_folder_with_the_merged_weights(kind, layers, rename, made, tmp_path):
    """Whichever names the training had for the layers."""
    pairs = adapter_folders.make_pairs(layers)
    named = {rename(layer): pair for layer, pair in pairs.items()}
    path = adapter_folders.write(tmp_path / "a", named)
    found = _score(made, _base(made, kind).adapt(str(path), path))
    if kind not in made.merged:
        expected = {f"{layer}.weight": _merge(layer, *pair) for layer, pair in pairs.items()}
        made.merged[kind] = _score_merged(made, kind, tmp_path, expected)
    merged = made.merged[kind]
    np.testing.assert_allclose(found.logp, merged.logp, atol=1e-5)
    np.testing.assert_array_equal(found.rank, merged.rank)


@pytest.mark.parametrize(("kind", "layers"), [EACH[0], EACH[2]])
def test_it_computes_as_the_librarys_network_with_its_layers_beside(kind, layers, made, tmp_path):
    one, pairs = made(kind), adapter_folders.make_pairs(layers, seed=1)
    path = adapter_folders.write(tmp_path / "a", pairs)
    model = _base(made, kind).adapt(str(path), path)
    references = model.tokens.encode(synthetic_pictures.sentences(IMAGES))
    found = _score(made, model)
    hooks = []
    for layer, (a, b) in pairs.items():

        def add(module, given, out, a=a, b=b):
            x = a.t()[given[0]] if isinstance(module, torch.nn.Embedding) else given[0] @ a.t()
            return out + SCALE * (x @ b.t())

        hooks.append(one.model.get_submodule(layer).register_forward_hook(add))
    try:
        for caption, image in enumerate(references.caption_images):
            at = slice(*references.caption_offsets[caption : caption + 2])
            with Image.open(
                made.found["bundle"] / "images" / made.found["names"][image]
            ) as picture:
                logp = folders.log_probabilities(one, picture, references.tokens[at].tolist())
            np.testing.assert_allclose(found.logp[at], logp, atol=1e-4)
    finally:
        for hook in hooks:
            hook.remove()


@pytest.mark.parametrize(
    ("kind", "layers"), [EACH[1], pytest.param(*EACH[0], marks=pytest.mark.slow)]
)
def test_each_adapter_is_alone_on_the_base_whatever_came_before(kind, layers, made, tmp_path):
    first, *_, last = layers
    paths = [
        adapter_folders.write(tmp_path / str(seed), adapter_folders.make_pairs(some, seed))
        for seed, some in enumerate([layers, {first: layers[first]}, {last: layers[last]}])
    ]
    unfit = adapter_folders.write(
        tmp_path / "unfit", adapter_folders.make_pairs({first: layers[first], last: (7, 7)})
    )
    alone = [_score(made, _open(made, kind).adapt("x", path)).logp for path in paths]
    base = _open(made, kind)
    for place in (0, 1, 1, 2, 0):
        with pytest.raises(UnusableCheckpoint, match="expected shape"):
            base.adapt("unfit", unfit)
        np.testing.assert_array_equal(
            _score(made, base.adapt(str(place), paths[place])).logp, alone[place]
        )
    assert not np.array_equal(alone[0], alone[1])


def test_stored_biases_and_modules_replace_those_of_the_base(made, tmp_path):
    drawn = torch.Generator().manual_seed(3)
    whole = {
        "lm_head.weight": torch.randn(348, 32, generator=drawn),
        "model.multi_modal_projector.linear_1.bias": torch.randn(32, generator=drawn),
        "model.language_model.norm.weight": torch.randn(32, generator=drawn),
    }
    pairs = adapter_folders.make_pairs({"model.multi_modal_projector.linear_1": (32, 16)})
    asked = {"modules_to_save": ["lm_head", "norm"], "bias": "lora_only"}
    path = adapter_folders.write(tmp_path / "a", pairs, whole, **asked)
    found = _score(made, _base(made, "llava").adapt(str(path), path))
    (layer, pair), *_ = pairs.items()
    changes = {f"{layer}.weight": _merge(layer, *pair)}
    changes |= {name: lambda _, tensor=tensor: tensor for name, tensor in whole.items()}
    merged = _score_merged(made, "llava", tmp_path, changes)
    np.testing.assert_allclose(found.logp, merged.logp, atol=1e-5)


REFUSED = [  # kind of base, layers, whole tensors, part of the sentence
    ("llava", {"layers.0.self_attn.q_proj": (32, 32)}, {}, "language.*q_proj.* and .*vision"),
    ("llava", {"language_model.model.layers.7.self_attn.q_proj": (32, 32)}, {}, "found none"),
    ("llava", {"lm_head": (24, 24)}, {}, r"expected shape \[348, 32\], .* found \[24, 24\]"),
    ("llava", {"lm_head": (348, 32), "language_model.lm_head": (348, 32)}, {}, "two changes"),
    ("llava", {}, {"model.language_model.norm.weight": (5,)}, r"\[32\], .* found \[5\]"),
    ("vit-gpt2", {"decoder.lm_head": (346, 24)}, {}, "tie_word_embeddings"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "layers", "whole", "expected"), REFUSED)
def test_an_adapter_of_another_base_is_refused_by_a_tensors_name(
    kind, layers, whole, expected, made, tmp_path
):
    tensors = {name: torch.zeros(shape) for name, shape in whole.items()}
    path = adapter_folders.write(tmp_path / "a", adapter_folders.make_pairs(layers), tensors)
    with pytest.raises(UnusableCheckpoint, match=expected) as refused:
        _base(made, kind).adapt(str(path), path)
    assert any(name in refused.value.detail for name in ("tensor ", "two changes"))


def test_values_that_are_not_finite_are_refused(made, tmp_path):
    pairs = adapter_folders.make_pairs({"lm_head": (348, 32)})
    pairs["lm_head"][1][3, 0] = torch.inf
    path = adapter_folders.write(tmp_path / "a", pairs)
    with pytest.raises((UnusableCheckpoint, InvalidCheckpoint), match="1 of 1044 values"):
        _base(made, "llava").adapt(str(path), path)
