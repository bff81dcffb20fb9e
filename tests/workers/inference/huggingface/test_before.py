"""Captioners that read a picture, and perhaps a prompt, in the places of words. Oracle: the
library's own processor writes what it trains on, and its own loss is computed of that.
"""

import json
import math
import shutil

import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

from helpers import huggingface_folders as folders
from service.contract.errors import InvalidPackage, OutOfMemory
from service.contract.formats.huggingface import FAMILIES_BY_MODEL_TYPE
from service.contract.formats.huggingface.schemas import validate_part
from workers.inference import checkpoints, scoring
from workers.inference.huggingface import decoder_stack, loader

IMAGES = 7


def _written(one, picture, text):
    """By the library's own processors: what it reads, and what of it counts (others are -100)."""
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=one.tokenizer, bos_token="[CLS]", eos_token="[SEP]", pad_token="[PAD]"
    )
    image, prompt = folders.processor(one.kind), folders.PROMPTS[one.kind]
    if one.kind == "paligemma":
        image.image_seq_length = 16
        written = transformers.PaliGemmaProcessor(image, tokenizer)(
            images=picture, text=f"<image>{prompt}", suffix=text
        )
    else:
        how = ("default", 1) if one.kind == "llava-llama" else ("full", 0)
        written = transformers.LlavaProcessor(image, tokenizer, 8, how[0], None, "<image>", how[1])(
            images=picture, text=prompt
        )
        caption = [*tokenizer(text, add_special_tokens=False)["input_ids"], one.end]
        labels = [-100] * len(written["input_ids"][0]) + caption
        written = {
            "pixel_values": written["pixel_values"],
            "input_ids": [[*written["input_ids"][0], *caption]],
            "labels": [labels],
        }
    return {name: torch.from_numpy(np.array(each)) for name, each in written.items()}


_KINDS = [pytest.param("paligemma", marks=pytest.mark.slow), "llava-llama", "llava-qwen2"]


@pytest.mark.long
@pytest.mark.parametrize("kind", _KINDS)
def test_a_captions_columns_are_the_loss_of_what_the_librarys_processor_writes(kind, saved):
    one = saved(kind, trained=False)
    model, inputs = folders.opened(one, IMAGES)
    references = [[texts[0]] for texts in folders.sentences(IMAGES)]
    found = scoring.compute_columns(model, inputs, model.tokens.encode(references))
    rows = folders.pictures(IMAGES, seed=3)
    for caption, (text,) in enumerate(references):
        with torch.no_grad():
            loss = one.library(**_written(one, rows[caption], text)).loss.item()
        own = found.logp[slice(*found.caption_offsets[caption : caption + 2])]
        assert -own.mean() == pytest.approx(loss, abs=1e-4)


@pytest.mark.parametrize("kind", folders.IN_PLACES)
def test_what_stands_before_captions_is_read_once_for_each_picture(kind, saved, monkeypatch):
    model, inputs = folders.opened(saved(kind, trained=False), IMAGES)
    references = model.tokens.encode([["a red circle"] * 6] * IMAGES)
    whole = scoring.compute_columns(model, inputs, references).logp
    read, plain = [], decoder_stack.read_prefix

    def counted(layers, x, *rest, **more):
        read.append(len(x))
        return plain(layers, x, *rest, **more)

    monkeypatch.setattr(decoder_stack, "read_prefix", counted)
    monkeypatch.setattr(decoder_stack, "_PLACES", 20)
    parted = scoring.compute_columns(model, inputs, references).logp
    assert read == [IMAGES]
    np.testing.assert_allclose(parted, whole, atol=1e-5)


class _CountingLayer(decoder_stack.LayerWithoutImage):
    def __init__(self):
        self.thought = []

    def own(self, x, _times):
        return x, x, x

    def after_own(self, x, read):
        return x + read

    def think(self, x):
        self.thought.append(tuple(x.shape))
        return x


def test_pictures_are_read_in_parts_and_the_last_layer_gives_keys_alone(monkeypatch):
    monkeypatch.setattr(decoder_stack, "_PLACES", 20)
    layers = [_CountingLayer(), _CountingLayer()]
    pairs = list(decoder_stack.read_prefix(layers, torch.ones(5, 8, 4), 2))
    assert [keys.shape for keys, _ in pairs] == [(5, 2, 8, 2)] * 2
    assert [layer.thought for layer in layers] == [[(2, 8, 4), (2, 8, 4), (1, 8, 4)], []]


@pytest.mark.parametrize(
    ("kind", "prompt", "told"),
    [
        ("paligemma", "a" * 300, "has 301 pieces: expected from 1 to 255"),
        ("paligemma", "<image>", "has 1 marks of a picture.*: expected 0"),
        ("llava-llama", "it is", "has 0 marks of a picture.*: expected 1"),
        ("llava-llama", "<image> <image> it is", "has 2 marks of a picture.*: expected 1"),
        ("llava-llama", "it is <image>", "expected words after the mark of a picture"),
    ],
)
def test_a_prompt_that_does_not_fit_is_refused(kind, prompt, told, saved, tmp_path):
    copy = shutil.copytree(saved(kind, trained=False).folder, tmp_path / "copy")
    (copy / "prompt.json").write_text(json.dumps({"prompt": prompt}))
    if kind == "paligemma":
        tokenizer = json.loads((copy / "tokenizer.json").read_text())
        mark = {"content": "<image>", "special": True, "normalized": False, "single_word": False}
        mark |= {"lstrip": False, "rstrip": False}
        tokenizer["added_tokens"].append({"id": len(tokenizer["model"]["vocab"]), **mark})
        (copy / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(InvalidPackage, match=told):
        checkpoints.open_captioner(copy)


@pytest.mark.parametrize("kind", ["paligemma", "llava-llama", "llava-qwen2"])
def test_tensors_of_older_versions_give_the_same_bits(kind, saved, tmp_path):
    one = saved(kind, trained=False)
    model, inputs = folders.opened(one, IMAGES)
    references = model.tokens.encode([["a red circle"]] * IMAGES)
    copy = shutil.copytree(one.folder, tmp_path / "copy")
    tensors = {
        name.replace("vision_tower.", "vision_tower.vision_model."): each
        for name, each in load_file(copy / "model.safetensors").items()
    }
    if kind != "llava-llama":  # its output is tied to its words
        words = "language_model.model.embed_tokens.weight"
        tensors["language_model.lm_head.weight"] = tensors[words].clone()
    save_file(tensors, copy / "model.safetensors")
    old = checkpoints.open_captioner(copy)
    np.testing.assert_array_equal(
        scoring.compute_columns(old, inputs, references).logp,
        scoring.compute_columns(model, inputs, references).logp,
    )


# The configurations of Salesforce/blip2-opt-2.7b, llava-hf/llava-1.5-7b-hf and
# google/paligemma-3b-pt-224, and how many parameters their publishers say they have.
PUBLISHED = [
    (
        {
            "model_type": "llava",
            "vision_config": {"model_type": "clip_vision_model", "projection_dim": 768},
            "text_config": {"model_type": "llama", "vocab_size": 32_064},
        },
        7.06e9,
    ),
    (
        {
            "model_type": "blip-2",
            "vision_config": {},
            "qformer_config": {},
            "text_config": {
                "model_type": "opt",
                "hidden_size": 2560,
                "word_embed_proj_dim": 2560,
                "num_hidden_layers": 32,
                "num_attention_heads": 32,
                "ffn_dim": 10_240,
                "vocab_size": 50_304,
                "eos_token_id": 50_118,
            },
        },
        3.74e9,
    ),
    (
        {
            "model_type": "paligemma",
            "vision_config": {"intermediate_size": 4304},
            "text_config": {"vocab_size": 257_216},
            "image_token_index": 257_152,
        },
        2.92e9,
    ),
]


@pytest.mark.parametrize(("config", "expected"), PUBLISHED)
def test_a_configuration_has_as_many_parameters_as_its_publisher_says(config, expected):
    family = FAMILIES_BY_MODEL_TYPE[config["model_type"]]
    shapes = validate_part(family, config, "config.json").shapes().values()
    assert sum(math.prod(shape) for shape in shapes) == pytest.approx(expected, rel=0.02)


def test_a_model_that_cannot_fit_into_memory_is_refused_with_a_sentence(saved):
    folder = saved("llava-llama", trained=False).folder
    with pytest.raises(OutOfMemory, match=r"takes about [0-9]+ MB, .* 1 MB"):
        loader.read_captioner(folder, limit=1_000_000)
