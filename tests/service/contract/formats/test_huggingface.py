"""Folders that transformers has saved: what is told of them, and what is refused before the library
sees them. They are made by hand here, without torch and the library; real ones are opened in
tests/workers/inference/huggingface.
"""

import json
from pathlib import Path

import pytest

from helpers.contract_files import laid_out, safetensors_file, with_changes
from prescore import model_types
from service.contract.errors import ConfigInvalid, InvalidCheckpoint, InvalidPackage, TensorMismatch
from service.contract.formats import huggingface, model_formats, packages

VIT_GPT2 = {
    "config.json": {
        "model_type": "vision-encoder-decoder",
        "encoder": {"model_type": "vit", "image_size": 16, "patch_size": 8},
        "decoder": {"model_type": "gpt2", "n_positions": 9, "eos_token_id": 5},
        "decoder_start_token_id": 1,
        "eos_token_id": 1,
    },
    "preprocessor_config.json": {
        "image_processor_type": "ViTImageProcessor", "size": {"height": 16, "width": 16}
    },
    "generation_config.json": {"max_length": 7, "num_beams": 4, "transformers_version": "5"},
    "tokenizer.json": {},
}  # fmt: skip
QWEN = {
    "config.json": {
        "model_type": "qwen2_5_vl",
        "text_config": {"max_position_embeddings": 128_000, "rope_theta": 10**9},
        "vision_config": {"patch_size": 14},
    },
    "generation_config.json": {
        "eos_token_id": [7, 8], "do_sample": True, "temperature": 0.1, "repetition_penalty": 1.05,
        "max_length": 20, "top_k": 1,
    },
    "tokenizer_config.json": {"chat_template": "{{ messages }}"},
    "tokenizer.json": {},
}  # fmt: skip
BLIP2 = {
    "config.json": {"model_type": "blip-2", "text_config": {"eos_token_id": 7}},
    "tokenizer.json": {},
}
SHAPES = {
    "decoder.transformer.wte.weight": (20, 8),
    "encoder.embeddings.cls_token": (1, 1, 12),
    "decoder.transformer.h.0.attn.masked_bias": (),  # counted by no model
}


def _save(folder, shapes, dtype="F32"):
    zeros = laid_out({name: (dtype, shape) for name, shape in shapes.items()})
    (folder / "model.safetensors").write_bytes(safetensors_file(*zeros))


def _made(folder, files):
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))
    _save(folder, SHAPES)
    return folder


@pytest.fixture
def folder(tmp_path):
    return _made(tmp_path, VIT_GPT2)


@pytest.fixture
def prompted(tmp_path):
    """Of a model that reads a prompt."""
    return _made(tmp_path, QWEN)


def _judge(folder):
    with packages.open_package(folder) as package:
        return huggingface.validate_transformers(package)


def _change(folder, name, **values):
    path = folder / name
    found = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(with_changes(found, **values)))


FACTS = [
    (VIT_GPT2, {"architecture": "vit-gpt2", "beams": 4, "longest": 6, "prompt": None}),
    (
        QWEN,
        {
            "architecture": "qwen2_5_vl",
            "beams": 1,
            "longest": 64,
            "prompt": "Describe the image in one sentence.",
        },
    ),
    (BLIP2, {"architecture": "blip-2", "prompt": ""}),
]


@pytest.mark.parametrize(("files", "expected"), FACTS)
def test_a_folder_says_what_its_captioner_is(files, expected, tmp_path):
    found = model_formats.read_package_facts(_made(tmp_path, files))
    assert {name: found[name] for name in expected} == expected
    assert (found["parameters"], found["vocabulary_size"]) == (172, 20)
    patches = 4 if files is VIT_GPT2 else 400
    assert found["picture_products"] == 172 * patches


def test_sampling_is_left_out_and_several_ends_are_kept(prompted):
    found = _judge(prompted)
    assert (found.ends, found.generation.repetition_penalty) == ([7, 8], 1.05)


_DEEP = {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {}}}}}}}}}
REFUSED = {
    "config.json": [
        ({"model_type": "whisper"}, "found 'whisper': transformers has no captioner of that type"),
        ({"model_type": "diffusion_gemma"}, "it writes by diffusion, not word by word. The op"),
        ({"decoder__model_type": "trocr"}, "its decoders, gpt2 and bert are read, not trocr"),
        ({"auto_map": {"AutoModel": "evil.py"}}, "auto_map asks for code"),
        ({"quantization_config": {"bits": 4}}, "quantization_config asks for code"),
        (
            {"encoder__hidden_size": 2**31},
            "encoder/hidden_size: expected a number up to 16,777,216",
        ),
        ({"encoder__num_hidden_layers": 600}, "num_hidden_layers: expected a number up to 512"),
        ({"decoder__n_layer": 600}, "decoder/n_layer: expected a number up to 512"),
        ({"encoder__depths": [1, 600]}, "encoder/depths/1: expected a number up to 512"),
        ({"encoder__more": [0] * 50_001}, "expected at most 50,000 values"),
        ({"encoder__more": _DEEP}, "expected at most 8 levels"),
        ({"encoder__mlp_ratio": float("inf")}, "Infinity|a finite number"),
        ({"encoder__name": "a" * 10_001}, "at most 10,000 characters"),
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
        ({"image_processor_type": "EvilProcessor"}, "expected one of ViT, DeiT"),
        ({"do_flip_channel_order": True}, "unknown field"),
        ({"do_resize": False}, "do_resize: expected True"),
    ],
    "prompt.json": [({"prompt": "a"}, "expected none, since captions of a vision-encoder-decoder")],
}


@pytest.mark.parametrize(
    ("name", "values", "told"), [(name, *row) for name, rows in REFUSED.items() for row in rows]
)
def test_what_could_change_the_computation_is_refused(name, values, told, folder):
    _change(folder, name, **values)
    with pytest.raises(InvalidCheckpoint, match=told):
        _judge(folder)


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


def test_tensors_are_plain_numbers(folder):
    _save(folder, SHAPES, "I64")
    with pytest.raises(TensorMismatch, match="found I64; save it without quantization"):
        _judge(folder)


def test_weights_in_parts_are_read_by_their_index(folder):
    (folder / "model.safetensors").unlink()
    shapes = [*SHAPES.items()]
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


@pytest.mark.parametrize("cut", [4, 300])
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
    assert (found.generation.decoder_start_token_id, found.ends) == (2, [3])
    assert found.preprocessing.shape == (16, 16)
    told = {name: getattr(found.generation, name) for name in [*search, "pad_token_id"]}
    assert told == {**search, "pad_token_id": 0}
    assert found.generation.most == 7
    _change(folder, "config.json", diversity_penalty=2.0)
    with pytest.raises(ConfigInvalid, match=r"diversity_penalty: 2\.0 is not implemented"):
        _judge(folder)


PROMPTS = [
    ('{"prompt": "caption en"}', None, "caption en"),
    (f'{{"prompt": "{"a" * 1001}"}}', ConfigInvalid, "expected at most 1000 characters"),
    ('{"prompt": 3}', ConfigInvalid, r"prompt\.json/prompt: expected a text, found 3"),
    ('{"prompt": "a", "suffix": "b"}', ConfigInvalid, r"prompt\.json/suffix: unknown field"),
    ('{"prompt": "a", "prompt": "b"}', ConfigInvalid, r"prompt\.json: "),
    (" " * 30_000, InvalidPackage, r"prompt\.json"),
]


@pytest.mark.parametrize(("text", "error", "told"), PROMPTS)
def test_a_prompt_is_a_file_of_the_folder(text, error, told, prompted):
    (prompted / "prompt.json").write_text(text)
    if error is None:
        assert _judge(prompted).prompt == told
        return
    with pytest.raises(error, match=told):
        _judge(prompted)


def test_a_prompt_is_assumed_only_where_a_template_says_how_a_chat_begins(prompted):
    (prompted / "tokenizer_config.json").unlink()
    with pytest.raises(InvalidPackage, match=r"expected prompt\.json .* or a template of chats"):
        _judge(prompted)
    (prompted / "chat_template.jinja").write_text("{{ messages }}")
    assert _judge(prompted).prompt == huggingface.DEFAULT_PROMPT


def test_the_guide_lists_the_types_as_they_are():
    guide = Path(__file__).parents[4] / "deploy" / "guide" / "bring-a-model.md"
    assert model_types.describe_model_types() in guide.read_text(encoding="utf-8")
