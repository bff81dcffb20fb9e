"""Folders that transformers has saved: what is taken of each family, and what is refused. They are
made by hand here, without torch and the library; real ones are opened in
tests/workers/inference/huggingface.
"""

import json
import math

import pytest

from helpers.contract_files import laid_out, safetensors_file, with_changes
from prescore import foreign
from service.contract.errors import ConfigInvalid, InvalidCheckpoint, InvalidPackage, TensorMismatch
from service.contract.formats import huggingface, model_formats, packages
from service.contract.formats.huggingface import FAMILIES_BY_MODEL_TYPE
from service.contract.formats.huggingface.schemas import validate_part

ENCODER = {
    "model_type": "vit", "hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2,
    "intermediate_size": 8, "image_size": 16, "patch_size": 8, "hidden_dropout_prob": 0.1,
}  # fmt: skip
DECODER = {
    "model_type": "gpt2", "vocab_size": 20, "n_positions": 9, "n_embd": 8, "n_layer": 1,
    "n_head": 2, "add_cross_attention": True, "is_decoder": True, "attn_pdrop": 0.1,
    "top_k": 50, "pruned_heads": {},
}  # fmt: skip
CONFIG = {
    "model_type": "vision-encoder-decoder",
    "encoder": ENCODER,
    "decoder": DECODER,
    "decoder_start_token_id": 1,
    "eos_token_id": 1,
    "architectures": ["VisionEncoderDecoderModel"],
    "transformers_version": "4.15.0",
}
_SIZES = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
_SIZES |= {"hidden_size": 12}
_SEEN = {**_SIZES, "image_size": 16, "patch_size": 8}
SWIN = {
    "model_type": "swin", "image_size": 32, "patch_size": 4, "embed_dim": 6, "depths": [1, 2],
    "num_heads": [2, 3], "window_size": 4, "num_layers": 2, "path_norm": True,
    "stage_names": ["stem", "stage1", "stage2"],
}  # fmt: skip
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


SIZE = {"size": {"height": 16, "width": 16}}
FILES = {
    "config.json": CONFIG,
    "preprocessor_config.json": {"image_processor_type": "ViTImageProcessor", **SIZE},
    "generation_config.json": {"max_length": 7, "num_beams": 4, "transformers_version": "5"},
    "tokenizer.json": {},
}
PROMPTED = {
    "config.json": PALIGEMMA,
    "preprocessor_config.json": {"image_processor_type": "SiglipImageProcessor", **SIZE},
    "tokenizer.json": {},
    "prompt.json": {"prompt": "caption en"},
}


def _family(config):
    return validate_part(FAMILIES_BY_MODEL_TYPE[config["model_type"]], config, "config.json")


def _shapes(config):
    return _family(config).shapes()


def _save(folder, shapes, dtype="F32"):
    zeros = laid_out({name: (dtype, shape) for name, shape in shapes.items()})
    (folder / "model.safetensors").write_bytes(safetensors_file(*zeros))


def _made(folder, files):
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))
    _save(folder, _shapes(files["config.json"]))
    return folder


@pytest.fixture
def folder(tmp_path):
    return _made(tmp_path, FILES)


@pytest.fixture
def prompted(tmp_path):
    """Of a model that reads a prompt."""
    return _made(tmp_path, PROMPTED)


def _judge(folder):
    with packages.open_package(folder) as package:
        return huggingface.validate_transformers(package)


def _change(folder, name, **values):
    path = folder / name
    path.write_text(json.dumps(with_changes(json.loads(path.read_text()), **values)))


def test_a_folder_says_what_its_captioner_is(folder):
    found = _judge(folder)
    assert found.family.architecture == "vit-gpt2"
    assert (found.start, found.end) == (1, 1)
    assert (found.generation.num_beams, found.generation.most) == (4, 6)
    assert found.family.vocabulary == 20
    assert found.parameters == sum(map(math.prod, _shapes(CONFIG).values()))
    assert found.preprocessing.shape == (16, 16)


REFUSED = {
    "config.json": [
        ({"model_type": "florence2"}, r"expected a model_type of vision-.*'florence2'"),
        ({"auto_map": {"AutoModel": "evil.py"}}, "auto_map asks for code"),
        ({"surprise": 1}, r"config.json/surprise: unknown field"),
        ({"encoder__model_type": "cvt"}, "'vit', 'deit', 'swin', 'beit', found 'cvt'"),
        ({"decoder__model_type": "llama"}, "/decoder: expected 'gpt2', 'bert', found 'llama'"),
        ({"decoder": 3}, "config.json/decoder: expected .*, found 'no model_type'"),
        ({"decoder__n_embd": 7}, r"config.json/decoder: expected an n_embd that 2"),
        ({"decoder__n_layer": 0}, r"config.json/decoder/n_layer: expected at least 1"),
        ({"encoder__hidden_size": 10**9}, r"encoder/hidden_size: expected at most"),
        ({"encoder__hidden_size": "12"}, r"hidden_size: expected a whole number"),
        ({"encoder__num_attention_heads": 5}, "5 heads divide, found 12"),
        ({"encoder__patch_size": 64}, "at least a patch, found 16"),
        ({"encoder__hidden_act": "os.system"}, r"encoder/hidden_act: expected 'gelu'"),
        ({"decoder__scale_attn_weights": False}, "scale_attn_weights: expected True"),
        ({"decoder__pruned_heads": {"0": [1]}}, r"pruned_heads: expected \{\}, found"),
        ({"decoder__add_cross_attention": False}, "add_cross_attention: expected True"),
        ({"decoder__vocab_size": 10**8}, "vocab_size: expected at most 300000"),
        ({"vocab_size": 21}, "a vocab_size of 20, as decoder/vocab_size says, found 21: .*remove"),
        ({"decoder_start_token_id": 20}, "start: expected one of 20, found 20"),
        ({"eos_token_id": None}, "expected one token as eos_token_id"),
        ({"eos_token_id": [1, 2]}, r"expected one token as eos_token_id.*\[1, 2\]"),
    ],
    "generation_config.json": [
        ({"do_sample": True}, "do_sample: True is not implemented"),
        ({"repetition_penalty": 0}, "repetition_penalty: expected more than 0"),
        ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size: .*at least 0"),
        ({"bad_words_ids": [[3]]}, r"bad_words_ids: \[\[3\]\] is not"),
        ({"surprise": 1}, "generation_config.json/surprise: unknown field"),
        ({"num_beams": 10**6}, "num_beams: expected at most 100"),
        ({"max_length": 1}, "of one token at the least"),
        ({"min_length": 50}, "at least 50 and at most 6 tokens"),
    ],
    "preprocessor_config.json": [  # more of them: test_onnx_pictures.py
        ({"size": {"height": 20, "width": 20}}, r"\[20, 20\], the model"),
        ({"image_processor_type": "EvilProcessor"}, "expected one of ViT, DeiT"),
        ({"do_flip_channel_order": True}, "unknown field"),
        ({"do_resize": False}, "do_resize: expected True"),
    ],
}


@pytest.mark.parametrize(
    ("name", "values", "told"), [(name, *row) for name, rows in REFUSED.items() for row in rows]
)
def test_what_could_change_the_computation_is_refused(name, values, told, folder):
    _change(folder, name, **values)
    with pytest.raises(ConfigInvalid, match=told) as refused:
        _judge(folder)
    assert refused.value.pointer.startswith(f"/{name}".removesuffix("/generation_config.json"))


def test_the_model_types_that_the_client_knows_are_those_that_are_read():
    assert tuple(FAMILIES_BY_MODEL_TYPE) == foreign.MODEL_TYPES


@pytest.mark.parametrize("name", ["config.json", "preprocessor_config.json", "tokenizer.json"])
def test_a_file_that_lacks_is_named(name, folder):
    (folder / name).unlink()
    with pytest.raises(InvalidPackage, match=name):
        _judge(folder)


@pytest.mark.parametrize("text", ["[1]", '{"a": 1, "a": 2}'])
def test_a_config_that_is_no_plain_object_is_refused(text, folder):
    (folder / "config.json").write_text(text)
    with pytest.raises(ConfigInvalid, match=r"config\.json: "):
        _judge(folder)


def test_pickled_weights_are_refused_with_what_to_do(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InvalidPackage, match=r"found pytorch_model\.bin: save_pretrained"):
        _judge(folder)


# Besides those of the config, with the masks and poolers that older versions saved.
TENSORS = [
    (
        CONFIG,
        {
            "decoder.transformer.h.0.attn.bias": (1, 1, 9, 9),
            "decoder.transformer.h.0.crossattention.masked_bias": (),
            "encoder.pooler.dense.weight": (12, 12),
            "decoder.lm_head.weight": (20, 8),
        },
        None,
    ),
    (CONFIG, {"decoder.transformer.wte.weight": None}, "1 missing, as decoder.transformer.wte"),
    (CONFIG, {"decoder.adapter.weight": (8, 8)}, "1 not known, as 'decoder.adapter.weight'"),
    (
        CONFIG,
        {"decoder.transformer.wte.weight": (21, 8)},
        r"asks for shape \[20, 8\], found \[21, 8\]",
    ),
    (PALIGEMMA, {"language_model.lm_head.weight": (30, 12)}, None),
    (PALIGEMMA, {"output.weight": (30, 12)}, r"1 not known, as 'output\.weight'"),
]


@pytest.mark.parametrize(("config", "changed", "told"), TENSORS)
def test_tensors_are_those_of_the_config(config, changed, told, tmp_path):
    folder = _made(tmp_path, PROMPTED if config is PALIGEMMA else FILES)
    shapes = {**_shapes(config), **changed}
    _save(folder, {name: shape for name, shape in shapes.items() if shape is not None})
    if told is None:
        assert _judge(folder).family.vocabulary in (20, 30)
        return
    with pytest.raises(TensorMismatch, match=told):
        _judge(folder)
    _save(folder, _shapes(config), "I64")
    with pytest.raises(TensorMismatch, match="found I64; save it without quantization"):
        _judge(folder)


def test_weights_in_parts_are_read_by_their_index(folder):
    (folder / "model.safetensors").unlink()
    shapes = [*_shapes(CONFIG).items()]
    places = {}
    for file, part in {"0.safetensors": shapes[::2], "1.safetensors": shapes[1::2]}.items():
        _save(folder, dict(part))
        (folder / "model.safetensors").rename(folder / file)
        places |= {name: file for name, _ in part}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    found = _judge(folder)
    assert {each.file for each in found.tensors.values()} == {"0.safetensors", "1.safetensors"}
    (folder / "1.safetensors").unlink()
    with pytest.raises(InvalidPackage, match=r"1\.safetensors"):
        _judge(folder)
    (folder / "model.safetensors.index.json").write_text('{"weight_map": [1]}')
    with pytest.raises(InvalidPackage, match="weight_map"):
        _judge(folder)


@pytest.mark.parametrize("cut", [4, 3000])
def test_weights_that_are_cut_off_are_refused(cut, folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InvalidCheckpoint):
        _judge(folder)


def test_older_folders_have_their_search_and_sizes_elsewhere(folder):
    """As published ones of 2022 do, and those of the usual recipe of fine-tuning: in config.json,
    and sizes as one number.
    """
    (folder / "generation_config.json").unlink()
    ids = {"decoder_start_token_id": 2, "pad_token_id": 0, "eos_token_id": 3, "vocab_size": 20}
    search = {"max_length": 8, "num_beams": 2, "early_stopping": True, "length_penalty": 2.0}
    search |= {"repetition_penalty": 2.0, "no_repeat_ngram_size": 3}
    _change(folder, "config.json", **ids, **search)
    processor = {"feature_extractor_type": "ViTFeatureExtractor", "size": 16, "do_resize": True}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    found = _judge(folder)
    assert (found.start, found.end, found.family.vocabulary) == (2, 3, 20)
    assert found.preprocessing.shape == (16, 16)
    told = {name: getattr(found.generation, name) for name in [*search, "pad_token_id"]}
    assert told == {**search, "pad_token_id": 0}
    assert found.generation.most == 7
    _change(folder, "config.json", diversity_penalty=2.0)
    with pytest.raises(ConfigInvalid, match=r"diversity_penalty: 2\.0 is not implemented"):
        _judge(folder)


OF_FAMILIES = [
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


@pytest.mark.parametrize(("config", "values", "told"), OF_FAMILIES)
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


def test_a_prompt_is_a_file_of_the_folder(prompted):
    found = _judge(prompted)
    assert (found.prompt, found.start, found.end) == ("caption en", 2, 1)
    assert found.family.positions == 280 - 4 - 256
    facts = model_formats.read_package_facts(prompted)
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
def test_no_prompt_is_assumed(text, error, told, prompted):
    path = prompted / "prompt.json"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(error, match=told) as refused:
        _judge(prompted)
    assert refused.value.pointer is None or "prompt.json" in refused.value.pointer


def test_a_prompt_that_nobody_would_read_is_refused(prompted):
    (prompted / "config.json").write_text(json.dumps(BLIP2))
    with pytest.raises(InvalidPackage, match="expected none, since captions of a blip-2 follow"):
        _judge(prompted)


def test_what_would_count_a_picture_too_is_refused(prompted):
    how = prompted / "generation_config.json"
    for name, instead in (("max_length", "max_new_tokens"), ("min_length", "min_new_tokens")):
        how.write_text(json.dumps({name: 12, "max_new_tokens": 20}))
        with pytest.raises(ConfigInvalid, match=f"expected {instead}"):
            _judge(prompted)
    for name, value in (("repetition_penalty", 1.5), ("no_repeat_ngram_size", 3)):
        how.write_text(json.dumps({name: value}))
        with pytest.raises(ConfigInvalid, match=f"{name} counts .*: expected to be left out"):
            _judge(prompted)
    neutral = {"min_length": 0, "repetition_penalty": 1.0, "no_repeat_ngram_size": 0}
    how.write_text(json.dumps({"max_new_tokens": 12, **neutral}))
    assert _judge(prompted).generation.most == 12


def test_tensors_have_the_names_of_any_version_but_once(prompted):
    shapes = _shapes(PALIGEMMA)
    old = {
        name.replace("vision_tower.", "vision_tower.vision_model."): shape
        for name, shape in shapes.items()
    }
    _save(prompted, old)
    assert _judge(prompted).tensors.keys() == shapes.keys()
    twice = "vision_tower.post_layernorm.bias"
    _save(prompted, {**old, twice: shapes[twice]})
    with pytest.raises(TensorMismatch, match=rf"'{twice}' is there twice"):
        _judge(prompted)
