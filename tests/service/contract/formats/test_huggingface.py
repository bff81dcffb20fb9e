"""What is refused, and what is not, of folders that transformers has saved. They are made by hand
here, without torch and the library; real ones are opened in tests/workers/inference/huggingface.
"""

import json
import math

import pytest

from helpers.contract_files import laid_out, safetensors_file, with_changes
from prescore import foreign
from service.contract.errors import ConfigInvalid, InvalidCheckpoint, InvalidPackage, TensorMismatch
from service.contract.formats import huggingface, packages
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
PROCESSOR = {"image_processor_type": "ViTImageProcessor", "size": {"height": 16, "width": 16}}


def tensors(shapes, dtype="F32"):
    """A safetensors file of zeros."""
    return safetensors_file(*laid_out({name: (dtype, shape) for name, shape in shapes.items()}))


def shapes_of(config):
    kind = FAMILIES_BY_MODEL_TYPE[config["model_type"]]
    return validate_part(kind, config, "config.json").shapes()


@pytest.fixture
def folder(tmp_path):
    files = {
        "config.json": CONFIG,
        "preprocessor_config.json": PROCESSOR,
        "generation_config.json": {"max_length": 7, "num_beams": 4, "transformers_version": "5"},
        "tokenizer.json": {},
    }
    for name, value in files.items():
        (tmp_path / name).write_text(json.dumps(value))
    (tmp_path / "model.safetensors").write_bytes(tensors(shapes_of(CONFIG)))
    return tmp_path


def judge(folder):
    with packages.open_package(folder) as package:
        return huggingface.validate_transformers(package)


def change(folder, name, **values):
    path = folder / name
    path.write_text(json.dumps(with_changes(json.loads(path.read_text()), **values)))


def test_a_folder_says_what_its_captioner_is(folder):
    found = judge(folder)
    assert found.family.architecture == "vit-gpt2"
    assert (found.start, found.end) == (1, 1)
    assert (found.generation.num_beams, found.generation.most) == (4, 6)
    assert found.family.vocabulary == 20
    assert found.parameters == sum(map(math.prod, shapes_of(CONFIG).values()))
    assert found.preprocessing.shape == (16, 16)


REFUSED = {
    "config.json": [
        ({"model_type": "florence2"}, r"expected a model_type of vision-.*'florence2'"),
        ({"auto_map": {"AutoModel": "evil.py"}}, "auto_map asks for code"),
        ({"surprise": 1}, r"config.json/surprise: unknown field"),
        ({"encoder__surprise": 1}, r"config.json/encoder/surprise: unknown field"),
        ({"encoder__model_type": "cvt"}, "'vit', 'deit', 'swin', 'beit', found 'cvt'"),
        ({"decoder__model_type": "llama"}, "/decoder: expected 'gpt2', 'bert', found 'llama'"),
        ({"decoder": 3}, "config.json/decoder: expected .*, found 'no model_type'"),
        ({"decoder__n_embd": 7}, r"config.json/decoder: expected an n_embd that 2"),
        ({"decoder__n_layer": 0}, r"config.json/decoder/n_layer: expected at least 1"),
        ({"encoder__hidden_size": 10**9}, r"encoder/hidden_size: expected at most"),
        ({"encoder__num_hidden_layers": 10**6}, "num_hidden_layers: expected at most"),
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
    change(folder, name, **values)
    with pytest.raises(ConfigInvalid, match=told) as refused:
        judge(folder)
    assert refused.value.pointer.startswith(f"/{name}".removesuffix("/generation_config.json"))


def test_the_model_types_that_the_client_knows_are_those_that_are_read():
    assert tuple(FAMILIES_BY_MODEL_TYPE) == foreign.MODEL_TYPES


FINE_TUNED = {
    "vocab_size": 20, "decoder_start_token_id": 2, "pad_token_id": 0, "eos_token_id": 3,
    "max_length": 8, "early_stopping": True, "no_repeat_ngram_size": 3, "length_penalty": 2.0,
    "num_beams": 4,
}  # fmt: skip


@pytest.mark.parametrize("has_own", [True, False])
def test_what_the_usual_recipe_of_fine_tuning_sets_is_read(has_own, folder):
    """Older versions of the library keep the search in config.json."""
    change(folder, "config.json", **FINE_TUNED)
    if has_own:
        own = {name: FINE_TUNED[name] for name in FINE_TUNED if name != "vocab_size"}
        (folder / "generation_config.json").write_text(json.dumps(own))
    else:
        (folder / "generation_config.json").unlink()
    found = judge(folder)
    searched = found.generation
    assert (found.start, found.end, found.family.vocabulary) == (2, 3, 20)
    assert (searched.most, searched.early_stopping, searched.num_beams) == (7, True, 4)
    assert (searched.no_repeat_ngram_size, searched.length_penalty) == (3, 2.0)
    assert searched.pad_token_id == 0


@pytest.mark.parametrize("name", ["config.json", "preprocessor_config.json", "tokenizer.json"])
def test_a_file_that_lacks_is_named(name, folder):
    (folder / name).unlink()
    with pytest.raises(InvalidPackage, match=name):
        judge(folder)


@pytest.mark.parametrize("text", ["[1]", '{"a": 1, "a": 2}'])
def test_a_config_that_is_no_plain_object_is_refused(text, folder):
    (folder / "config.json").write_text(text)
    with pytest.raises(ConfigInvalid, match=r"config\.json: "):
        judge(folder)


def test_pickled_weights_are_refused_with_what_to_do(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(InvalidPackage, match=r"found pytorch_model\.bin: save_pretrained"):
        judge(folder)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"decoder.transformer.wte.weight": None}, "1 missing, as decoder.transformer.wte.weight"),
        ({"decoder.adapter.weight": (8, 8)}, "1 not known, as 'decoder.adapter.weight'"),
        ({"decoder.transformer.wte.weight": (21, 8)}, r"asks for shape \[20, 8\], found \[21, 8\]"),
    ],
)
def test_tensors_are_those_of_the_config(changed, told, folder):
    shapes = {**shapes_of(CONFIG), **changed}
    plain = {name: shape for name, shape in shapes.items() if shape is not None}
    (folder / "model.safetensors").write_bytes(tensors(plain))
    with pytest.raises(TensorMismatch, match=told):
        judge(folder)


def test_weights_are_floating_numbers(folder):
    (folder / "model.safetensors").write_bytes(tensors(shapes_of(CONFIG), "I64"))
    with pytest.raises(TensorMismatch, match="found I64; save it without quantization"):
        judge(folder)


def test_masks_that_older_versions_saved_and_poolers_are_let_be(folder):
    old = {
        "decoder.transformer.h.0.attn.bias": (1, 1, 9, 9),
        "decoder.transformer.h.0.crossattention.masked_bias": (),
        "encoder.pooler.dense.weight": (12, 12),
        "decoder.lm_head.weight": (20, 8),
    }
    (folder / "model.safetensors").write_bytes(tensors(shapes_of(CONFIG) | old))
    assert judge(folder).family.vocabulary == 20


def _sharded(folder, places):
    (folder / "model.safetensors").unlink()
    for number in set(places.values()):
        mine = {name: shapes_of(CONFIG)[name] for name, one in places.items() if one == number}
        (folder / f"{number}.safetensors").write_bytes(tensors(mine))
    index = {"weight_map": {name: f"{one}.safetensors" for name, one in places.items()}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_weights_in_parts_are_read_by_their_index(folder):
    places = {name: number % 2 for number, name in enumerate(shapes_of(CONFIG))}
    _sharded(folder, places)
    found = judge(folder)
    assert {each.file for each in found.tensors.values()} == {"0.safetensors", "1.safetensors"}
    (folder / "1.safetensors").unlink()
    with pytest.raises(InvalidPackage, match=r"1\.safetensors"):
        judge(folder)
    (folder / "model.safetensors.index.json").write_text('{"weight_map": [1]}')
    with pytest.raises(InvalidPackage, match="weight_map"):
        judge(folder)


@pytest.mark.parametrize("cut", [4, 3000])
def test_weights_that_are_cut_off_are_refused(cut, folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(InvalidCheckpoint):
        judge(folder)


def test_older_folders_have_their_search_and_sizes_elsewhere(folder):
    """As published ones of 2022 do: in config.json, and sizes as one number."""
    (folder / "generation_config.json").unlink()
    change(folder, "config.json", max_length=6, num_beams=2, early_stopping=True)
    processor = {"feature_extractor_type": "ViTFeatureExtractor", "size": 16, "do_resize": True}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    found = judge(folder)
    assert (found.generation.most, found.generation.num_beams) == (5, 2)
    assert found.preprocessing.shape == (16, 16)
    change(folder, "config.json", repetition_penalty=2.0, no_repeat_ngram_size=3)
    found = judge(folder).generation
    assert (found.repetition_penalty, found.no_repeat_ngram_size) == (2.0, 3)
    change(folder, "config.json", diversity_penalty=2.0)
    with pytest.raises(ConfigInvalid, match=r"diversity_penalty: 2\.0 is not implemented"):
        judge(folder)
