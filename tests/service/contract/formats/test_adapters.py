"""Adapters of PEFT, judged by their config and the header of their tensors: made here by hand."""

import json
import math

import pytest

from helpers.contract_files import laid_out, safetensors_file
from service.contract.errors import ConfigInvalid, InvalidCheckpoint, TensorMismatch
from service.contract.formats import model_formats, packages
from service.contract.formats.huggingface import adapters

CONFIG = {"peft_type": "LORA", "r": 4, "lora_alpha": 6, "base_model_name_or_path": "acme/tiny"}
Q, K, WORDS = "model.layers.0.self_attn.q_proj", "model.layers.11.self_attn.k_proj", "model.embed"


def _pair(layer, rank=4, outputs=6, inputs=8):
    named = f"base_model.model.{layer}"
    return {
        f"{named}.lora_A.weight": ("F32", (rank, inputs)),
        f"{named}.lora_B.weight": ("BF16", (outputs, rank)),
    }


def _whole(name):
    return {f"base_model.model.{name}": ("F16", (3,))}


EMBEDDING = {
    f"base_model.model.{WORDS}.lora_embedding_A": ("F32", (4, 9)),
    f"base_model.model.{WORDS}.lora_embedding_B": ("F32", (5, 4)),
}
BOTH = {**_pair(Q), **_pair(K)}


def _validated(folder, config, tensors):
    folder.mkdir(exist_ok=True)
    (folder / "adapter_config.json").write_text(json.dumps(config))
    (folder / "adapter_model.safetensors").write_bytes(safetensors_file(*laid_out(tensors)))
    with packages.open_package(folder) as package:
        return adapters.validate_adapter(package)


OFF = {"use_dora": False, "megatron_config": None, "loftq_config": {}, "target_parameters": []}
SCALES = [  # changes of the config, scales of Q and K
    ({}, (6 / 4, 6 / 4)),
    ({**OFF, "lora_dropout": 0.05, "fan_in_fan_out": True, "rank_pattern": None}, (6 / 4, 6 / 4)),
    ({"use_rslora": True}, (6 / 2, 6 / 2)),
    ({"alpha_pattern": {"k_proj": 1}}, (6 / 4, 1 / 4)),
    ({"alpha_pattern": {r"layers\.\d+\..*q_proj": 2, ".*": 8}}, (2 / 4, 8 / 4)),
    ({"alpha_pattern": {f"^{Q}": 2, "proj": 9, "q_proj|k_proj": 3}}, (2 / 4, 3 / 4)),
    ({"alpha_pattern": {"elf_attn.q_proj": 2}}, (6 / 4, 6 / 4)),
]


@pytest.mark.parametrize(("changes", "expected"), SCALES)
def test_the_scale_of_a_layer_is_alpha_by_its_rank(changes, expected, tmp_path):
    found = _validated(tmp_path / "a", {**CONFIG, **changes}, BOTH)
    assert [found.changes[layer].scale for layer in (Q, K)] == pytest.approx(expected)


def test_ranks_of_single_layers_count_in_their_scales(tmp_path):
    tensors = {**_pair(Q), **_pair(K, rank=2)}
    config = {**CONFIG, "rank_pattern": {"k_proj": 2}, "use_rslora": True}
    found = _validated(tmp_path / "a", config, tensors)
    assert found.changes[K].scale == pytest.approx(6 / math.sqrt(2))
    with pytest.raises(TensorMismatch, match=rf"{K}: .* says rank 4: .* found \(2, 8\) and \(6, 2"):
        _validated(tmp_path / "a", CONFIG, tensors)


def test_embeddings_biases_and_whole_modules_are_told_apart(tmp_path):
    whole = {**_whole(f"{Q}.base_layer.bias"), **_whole("lm_head.modules_to_save.weight")}
    config = {**CONFIG, "modules_to_save": ["lm_head"], "bias": "lora_only"}
    found = _validated(tmp_path / "a", config, {**EMBEDDING, **BOTH, **whole})
    assert {layer: change.is_embedding for layer, change in found.changes.items()} == {
        WORDS: True,
        Q: False,
        K: False,
    }
    sides = {f"{layer}.{side}" for layer in found.changes for side in "AB"}
    assert found.tensors.keys() - sides == {f"{Q}.bias", "lm_head.weight"}
    assert found.base == "acme/tiny"


REFUSED = [  # changes of the config, tensors, part of the sentence
    ({"peft_type": "IA3"}, BOTH, "peft_type: expected 'LORA', found 'IA3'"),
    ({"use_dora": True}, BOTH, "use_dora is not implemented: merge"),
    ({"megatron_config": {"a": 1}}, BOTH, "megatron_config is not implemented"),
    ({"layer_replication": [[0, 2]]}, BOTH, "layer_replication is not implemented"),
    ({"trainable_token_indices": [3]}, BOTH, "trainable_token_indices is not implemented"),
    ({"init_lora_weights": "pissa_niter_4"}, BOTH, "init_lora_weights.*found 'pissa_niter_4'"),
    ({"init_lora_weights": "loftq"}, BOTH, "init_lora_weights.*found 'loftq'"),
    ({"new_option": 1}, BOTH, "new_option is not implemented"),
    ({"r": 0}, BOTH, "r: expected at least 1"),
    ({"lora_alpha": "6"}, BOTH, "lora_alpha: expected a number"),
    ({"alpha_pattern": {"(a+)+$": 1}}, BOTH, "alpha_pattern.*expected a text like"),
    ({"rank_pattern": {".*.*.*": 1}}, BOTH, "rank_pattern.*expected a text like"),
    ({"target_modules": ["v_proj"]}, BOTH, f"{Q}: expected one of target_modules, v_proj"),
    ({"modules_to_save": ["lm_head"]}, BOTH, "modules_to_save: .* has no 'lm_head'"),
    ({"r": 3}, BOTH, f"{Q}: adapter_config.json says rank 3"),
    ({}, dict([*_pair(Q).items()][:1]), r"expected A .*, found \(4, 8\) and None"),
    ({}, {"model.x.lora_A.weight": ("F32", (4, 8))}, "'model.x.lora_A.weight' of F32: expected"),
    ({}, {f"base_model.model.{Q}.lora_magnitude_vector": ("F32", (4,))}, "magnitude.*expected"),
    ({}, {f"base_model.model.{Q}.lora_A.weight": ("I64", (4, 8))}, "of I64: expected"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "tensors", "expected"), REFUSED)
def test_what_asks_for_another_computation_is_refused_by_name(changes, tensors, expected, tmp_path):
    with pytest.raises(InvalidCheckpoint, match=expected) as refused:
        _validated(tmp_path / "a", {**CONFIG, **changes}, tensors)
    assert type(refused.value) in (ConfigInvalid, TensorMismatch)


def test_a_folder_with_both_is_an_adapter_whose_base_is_not_known(tmp_path):
    _validated(tmp_path / "a", CONFIG, BOTH)
    (tmp_path / "a" / "config.json").write_text("{}")
    assert model_formats.detect_format(tmp_path / "a") == "adapter"
    facts = model_formats.read_package_facts(tmp_path / "a")
    assert facts["base"] == {"name": "acme/tiny", "digest": None}
    assert (facts["units"], facts["inputs"], facts["vocabulary_size"]) == ("pieces", "pixels", None)
