"""Which configurations of each family are taken, without torch and the library, and what a folder
has to say of a prompt.
"""

import json
import math

import pytest

from helpers.contract_files import laid_out, safetensors_file, with_changes
from service.contract.errors import ConfigInvalid, InvalidPackage, TensorMismatch
from service.contract.formats import huggingface, model_formats, packages
from service.contract.formats.huggingface import FAMILIES_BY_MODEL_TYPE
from service.contract.formats.huggingface.schemas import validate_part

_SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
_SIZES |= {"hidden_size": 12}
_SEEN = {**_SIZES, "image_size": 16, "patch_size": 8}
SWIN = {
    "model_type": "swin", "image_size": 32, "patch_size": 4, "embed_dim": 6, "depths": [1, 2],
    "num_heads": [2, 3], "window_size": 4, "num_layers": 2, "path_norm": True,
    "stage_names": ["stem", "stage1", "stage2"],
}  # fmt: skip
SIZE = {"size": {"height": 16, "width": 16}}
BEIT = {"model_type": "beit", **_SEEN, "use_relative_position_bias": True, "pool_scales": [1, 2]}
BLIP2 = {
    "model_type": "blip-2",
    "vision_config": {**_SEEN, "model_type": "blip_2_vision_model", "dropout": 0.0},
    "qformer_config": {**_SIZES, "classifier_dropout": None},
    "text_config": {
        "model_type": "opt", "vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1,
        "num_attention_heads": 2, "ffn_dim": 10, "max_position_embeddings": 20,
        "word_embed_proj_dim": 8, "eos_token_id": 7, "prefix": "</s>",
        "_remove_final_layer_norm": False,
    },
    "num_query_tokens": 5, "image_token_index": 29, "use_decoder_only_language_model": True,
}  # fmt: skip
PALIGEMMA = {
    "model_type": "paligemma", "bos_token_id": 2, "eos_token_id": 1,
    "vision_config": {**_SEEN, "vision_use_head": False, "projector_hidden_act": "gelu_fast"},
    "text_config": {
        **_SIZES, "vocab_size": 30, "num_key_value_heads": 1, "head_dim": 4,
        "max_position_embeddings": 280, "num_image_tokens": 4,
    },
    "projection_dim": 12, "image_token_index": 29, "ignore_index": -100,
}  # fmt: skip
LLAVA = {
    "model_type": "llava",
    "vision_config": {**_SEEN, "model_type": "clip_vision_model", "projection_dim": 7},
    "text_config": {
        **_SIZES, "model_type": "llama", "vocab_size": 30, "max_position_embeddings": 280,
        "rope_scaling": None, "pretraining_tp": 1,
    },
    "image_token_index": 29, "ignore_index": -100, "image_seq_length": 576,
}  # fmt: skip


def _seen_by(encoder):
    decoder = {"model_type": "gpt2", "vocab_size": 20, "n_embd": 12, "n_head": 2}
    decoder["add_cross_attention"] = True
    return {"model_type": "vision-encoder-decoder", "encoder": encoder, "decoder": decoder}


def _family(config):
    return validate_part(FAMILIES_BY_MODEL_TYPE[config["model_type"]], config, "config.json")


REFUSED = [
    (_seen_by(SWIN), {"encoder__depths": []}, "encoder/depths: expected at least 1 item"),
    (_seen_by(SWIN), {"encoder__depths": [1] * 9}, "encoder/depths: expected at most 8 items"),
    (_seen_by(SWIN), {"encoder__num_heads": [2]}, "encoder: expected num_heads of 2 stages"),
    (_seen_by(SWIN), {"encoder__num_heads": [2, 5]}, "a width that 5 heads divide, found 12"),
    (_seen_by(SWIN), {"encoder__hidden_size": 6}, "expected a hidden_size of 12.*found 6"),
    (_seen_by(SWIN), {"encoder__window_size": 5}, "a window_size of at most 4, .*found 5"),
    (_seen_by(SWIN), {"encoder__image_size": 30}, "whole patches of 4, found 30"),
    (_seen_by(SWIN), {"encoder__embed_dim": 10**9}, "embed_dim: expected at most 16384"),
    (_seen_by(SWIN), {"encoder__mlp_ratio": float("inf")}, "mlp_ratio: expected"),
    (_seen_by(BEIT), {"encoder__head_dim": 4}, "config.json/encoder/head_dim: unknown field"),
    (BLIP2, {"text_config__model_type": "t5"}, "text_config/model_type: expected 'opt'"),
    (BLIP2, {"text_config__word_embed_proj_dim": 4}, "that is the hidden_size, found 4"),
    (BLIP2, {"text_config__do_layer_norm_before": False}, "layer_norm_before: expected True"),
    (BLIP2, {"text_config___remove_final_layer_norm": True}, "final_layer_norm: expected False"),
    (BLIP2, {"text_config__num_attention_heads": 3}, "a hidden_size that 3 heads divide, found 8"),
    (BLIP2, {"num_query_tokens": 20}, "more max_position_embeddings than the 20 places"),
    (BLIP2, {"qformer_config__use_qformer_text_input": True}, "text_input: expected False"),
    (PALIGEMMA, {"text_config__model_type": "gemma2"}, "model_type: expected 'gemma'"),
    (PALIGEMMA, {"text_config__head_dim": 3}, "head_dim: .*multiple of 2"),
    (PALIGEMMA, {"text_config__num_key_value_heads": 3}, "that 3 divides, found 2"),
    (PALIGEMMA, {"text_config__rope_theta": 0.0}, "rope_theta: expected more than 1"),
    (PALIGEMMA, {"text_config__rope_parameters": {"rope_type": "yarn"}}, "expected 'default'"),
    (PALIGEMMA, {"text_config__attention_bias": True}, "attention_bias: expected False"),
    (PALIGEMMA, {"vision_config__vision_use_head": True}, "vision_use_head: expected False"),
    (LLAVA, {"text_config__model_type": "mistral"}, "text_config: expected 'llama', 'qwen2'"),
    (LLAVA, {"vision_config__model_type": "pixtral"}, "vision_config: expected 'clip_vision_mod"),
    (LLAVA, {"vision_feature_layer": -4}, "a vision_feature_layer of 2 layers, found -4"),
    (LLAVA, {"vision_feature_layer": [-2, -5]}, "vision_feature_layer: expected a whole number"),
    (LLAVA, {"vision_feature_select_strategy": "cls"}, "strategy: expected 'default' or 'full'"),
    (LLAVA, {"text_config__max_position_embeddings": 261}, "than the 4 places of a picture"),
    (LLAVA, {"text_config__hidden_size": 6}, "each of 2 heads has an even part, found 6"),
    (LLAVA, {"text_config__rope_scaling": {"type": "linear"}}, "rope_scaling: expected None"),
    (PALIGEMMA, {"projection_dim": 13}, "expected a projection_dim of 12, .*found 13"),
    (PALIGEMMA, {"tie_word_embeddings": False}, "tie_word_embeddings: expected True"),
]


@pytest.mark.parametrize(("config", "values", "told"), REFUSED)
def test_what_is_not_implemented_or_has_no_bounds_is_refused(config, values, told):
    _family(config)
    with pytest.raises(ConfigInvalid, match=told) as refused:
        _family(with_changes(config, **values))
    assert refused.value.pointer.startswith("/config.json")


def test_another_model_is_told_which_are_taken_and_that_columns_fit_every_one(folder):
    (folder / "config.json").write_text('{"model_type": "qwen2_vl"}')
    with pytest.raises(ConfigInvalid) as refused:
        _judge(folder)
    for name in FAMILIES_BY_MODEL_TYPE:
        assert name in refused.value.detail
    assert "found 'qwen2_vl'" in refused.value.detail
    assert "prescore.Recorder" in refused.value.detail


def test_older_folders_say_of_turns_and_widths_what_newer_ones_do():
    old = with_changes(PALIGEMMA, text_config__rope_theta=500.0)
    new = with_changes(PALIGEMMA, text_config__rope_parameters={"rope_theta": 500.0})
    assert _family(old) == _family(new) != _family(PALIGEMMA)
    assert _family(_seen_by(SWIN)) == _family(_seen_by({**SWIN, "hidden_size": 12}))


@pytest.mark.parametrize("config", [_seen_by(SWIN), _seen_by(BEIT), BLIP2, LLAVA, PALIGEMMA])
def test_what_a_picture_takes_grows_with_its_places(config):
    """Each weight once a place: of these small ones, between one and all of its places."""
    family = _family(config)
    all_weights = sum(map(math.prod, family.shapes().values()))
    assert 0 < family.products < all_weights * max(family.places().values())


def test_an_encoder_is_priced_by_its_patches_and_the_one_that_says_what_it_sees():
    one = _family(_seen_by(BEIT))
    own = {name: shape for name, shape in one.shapes().items() if name.startswith("encoder.")}
    assert one.products == 5 * sum(map(math.prod, own.values()))


@pytest.fixture
def folder(tmp_path):
    """Of a PaliGemma with weights that are zeros."""
    files = {
        "config.json": PALIGEMMA,
        "preprocessor_config.json": {"image_processor_type": "SiglipImageProcessor", **SIZE},
        "tokenizer.json": {},
        "prompt.json": {"prompt": "caption en"},
    }
    for name, value in files.items():
        (tmp_path / name).write_text(json.dumps(value))
    _save(tmp_path, _family(PALIGEMMA).shapes())
    return tmp_path


def _save(folder, shapes):
    zeros = laid_out({name: ("F32", shape) for name, shape in shapes.items()})
    (folder / "model.safetensors").write_bytes(safetensors_file(*zeros))


def _judge(folder):
    with packages.open_package(folder) as package:
        return huggingface.validate_transformers(package)


def test_a_prompt_is_a_file_of_the_folder(folder):
    found = _judge(folder)
    assert (found.prompt, found.start, found.end) == ("caption en", 2, 1)
    assert found.family.positions == 280 - 4 - 256
    facts = model_formats.read_package_facts(folder)
    assert facts["prompt"] == "caption en"
    assert facts["picture_products"] == found.family.products


PROMPTS = [
    (None, InvalidPackage, r"expected prompt\.json .*a paligemma reads a prompt .*'caption en'"),
    ('{"prompt": ""}', ConfigInvalid, r"prompt\.json/prompt: expected at least 1 character"),
    (f'{{"prompt": "{"a" * 1001}"}}', ConfigInvalid, "expected at most 1000 characters"),
    ('{"prompt": 3}', ConfigInvalid, r"prompt\.json/prompt: expected a text, found 3"),
    ('{"prompt": "a", "suffix": "b"}', ConfigInvalid, r"prompt\.json/suffix: unknown field"),
    ('{"prompt": "a", "prompt": "b"}', ConfigInvalid, r"prompt\.json: "),
    (" " * 30_000, InvalidPackage, r"prompt\.json"),
]


@pytest.mark.parametrize(("text", "error", "told"), PROMPTS)
def test_no_prompt_is_assumed(text, error, told, folder):
    path = folder / "prompt.json"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(error, match=told) as refused:
        _judge(folder)
    assert refused.value.pointer is None or "prompt.json" in refused.value.pointer


def test_a_prompt_that_nobody_would_read_is_refused(folder):
    (folder / "config.json").write_text(json.dumps(BLIP2))
    with pytest.raises(InvalidPackage, match="expected none, since captions of a blip-2 follow"):
        _judge(folder)


def test_what_would_count_a_picture_too_is_refused(folder):
    how = folder / "generation_config.json"
    for name, instead in (("max_length", "max_new_tokens"), ("min_length", "min_new_tokens")):
        how.write_text(json.dumps({name: 12, "max_new_tokens": 20}))
        with pytest.raises(ConfigInvalid, match=f"expected {instead}"):
            _judge(folder)
    for name, value in (("repetition_penalty", 1.5), ("no_repeat_ngram_size", 3)):
        how.write_text(json.dumps({name: value}))
        with pytest.raises(ConfigInvalid, match=f"{name} counts .*: expected to be left out"):
            _judge(folder)
    neutral = {"min_length": 0, "repetition_penalty": 1.0, "no_repeat_ngram_size": 0}
    how.write_text(json.dumps({"max_new_tokens": 12, **neutral}))
    assert _judge(folder).generation.most == 12


def test_tensors_have_the_names_of_any_version_but_once(folder):
    shapes = _family(PALIGEMMA).shapes()
    old = {
        name.replace("vision_tower.", "vision_tower.vision_model."): shape
        for name, shape in shapes.items()
    }
    _save(folder, old)
    assert _judge(folder).tensors.keys() == shapes.keys()
    twice = "vision_tower.post_layernorm.bias"
    _save(folder, {**old, twice: shapes[twice]})
    with pytest.raises(TensorMismatch, match=rf"'{twice}' is there twice"):
        _judge(folder)


def test_a_tensor_that_is_tied_in_another_family_is_not_known(folder):
    shapes = _family(PALIGEMMA).shapes()
    _save(folder, {**shapes, "output.weight": (30, 12)})
    with pytest.raises(TensorMismatch, match=r"1 not known, as 'output\.weight'"):
        _judge(folder)
    _save(folder, {**shapes, "language_model.lm_head.weight": (30, 12)})
    assert _judge(folder).family.vocabulary == 30
