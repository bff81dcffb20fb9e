"""The names and shapes of the tensors that a configuration asks for are those that the library
saves of it. Poolers are left out, which no output depends on.
"""

import json

import pytest
import transformers
from safetensors import safe_open

from service.contract.formats.huggingface import FAMILIES_BY_MODEL_TYPE
from service.contract.formats.huggingface.schemas import validate_part

_SIZES = {
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 8,
}
_SEEN = {**_SIZES, "image_size": 16, "patch_size": 8}


def _seen_by(encoder):
    decoder = transformers.GPT2Config(vocab_size=20, n_embd=8, n_head=2, n_layer=1, n_positions=9)
    both = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    return transformers.VisionEncoderDecoderModel(both)


def _beit(**more):
    return _seen_by(transformers.BeitConfig(**_SEEN, **more))


def _swin(**more):
    sizes = {"image_size": 32, "embed_dim": 6, "depths": [1, 2], "num_heads": [2, 3]}
    return _seen_by(transformers.SwinConfig(**sizes, window_size=4, **more))


def _blip2(qformer, vision):
    text = {"model_type": "opt", "vocab_size": 30, "hidden_size": 8, "num_attention_heads": 2}
    text |= {"num_hidden_layers": 1, "ffn_dim": 10, "word_embed_proj_dim": 8}
    config = transformers.Blip2Config(
        vision_config={**_SEEN, **vision},
        qformer_config={**_SIZES, **qformer},
        text_config=text,
        num_query_tokens=3,
    )
    return transformers.Blip2ForConditionalGeneration(config)


def _llava(text, vision, **more):
    config = transformers.LlavaConfig(
        vision_config={**_SEEN, **vision}, text_config={"vocab_size": 30, **_SIZES, **text}, **more
    )
    return transformers.LlavaForConditionalGeneration(config)


_CLIP = {"model_type": "clip_vision_model"}
_SIGLIP = {"model_type": "siglip_vision_model", "vision_use_head": False}
MADE = {
    "beit": lambda: _beit(use_relative_position_bias=True, use_mask_token=True),
    "beit, shared": lambda: _beit(
        use_shared_relative_position_bias=True, layer_scale_init_value=0.0, use_mean_pooling=False
    ),
    "beit, absolute": lambda: _beit(use_absolute_position_embeddings=True),
    "swin": _swin,
    "swin, absolute": lambda: _swin(use_absolute_embeddings=True, qkv_bias=False, mlp_ratio=2.5),
    "blip-2": lambda: _blip2({}, {}),
    "blip-2, all cross": lambda: _blip2({"cross_attention_frequency": 1}, {"qkv_bias": False}),
    "blip-2, every third": lambda: _blip2({"cross_attention_frequency": 3}, {}),
    "llava": lambda: _llava({"model_type": "llama"}, _CLIP),
    "llava, tied": lambda: _llava(
        {
            "model_type": "llama",
            "num_key_value_heads": 1,
            "head_dim": 4,
            "tie_word_embeddings": True,
        },
        _SIGLIP,
        multimodal_projector_bias=False,
    ),
    "llava, tied by both": lambda: _llava({"model_type": "llama"}, _CLIP, tie_word_embeddings=True),
    "llava, qwen2": lambda: _llava({"model_type": "qwen2", "num_key_value_heads": 2}, _CLIP),
}


@pytest.mark.parametrize("name", MADE)
def test_a_configuration_asks_for_what_the_library_saves(name, tmp_path):
    MADE[name]().save_pretrained(tmp_path)
    with safe_open(tmp_path / "model.safetensors", "pt") as file:
        saved = {each: tuple(file.get_slice(each).get_shape()) for each in file.keys()}  # noqa: SIM118
    config = json.loads((tmp_path / "config.json").read_text())
    found = validate_part(
        FAMILIES_BY_MODEL_TYPE[config["model_type"]], config, "config.json"
    ).shapes()
    assert found == {each: shape for each, shape in saved.items() if ".pooler." not in each}
