"""Small captioners of transformers that are made of other parts than those of
`huggingface_folders`: a picture in the places of words, other encoders.
"""

from typing import TYPE_CHECKING, Any

import torch
import transformers
from tokenizers import AddedToken, Tokenizer, processors

if TYPE_CHECKING:
    from huggingface_folders import Saved

_SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
_SEEN = {**_SIZES, "hidden_size": 32, "image_size": 32, "patch_size": 8}
_QUERIES, _PATCHES = 3, 16
PROMPTS = {
    "paligemma": "it is one",
    "llava-llama": "the <image> it is:",
    "llava-qwen2": "<image>\none is",
}
_EDGES = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def beside(saved: "Saved", ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """What the library takes for words `ids` (n, m) that begin with START, after a picture."""
    mark = saved.library.config.image_token_index
    if saved.kind == "blip2-opt":
        places = torch.full((len(ids), _QUERIES), mark)
        return {"input_ids": torch.cat([places, ids], dim=1)}
    first = torch.tensor([prompt_ids(saved.kind, saved.tokenizer)[:-1]])
    read = torch.cat([first.expand(len(ids), -1), ids], dim=1)
    if saved.kind != "paligemma":
        return {"input_ids": read}
    is_caption = torch.arange(read.shape[1]) > first.shape[1]
    return {"input_ids": read, "token_type_ids": is_caption.long().expand(len(ids), -1)}


def prompt_ids(kind: str, tokenizer: Tokenizer) -> list[int]:
    """With a picture's places."""
    mark = tokenizer.get_vocab_size() - 1
    if kind == "paligemma":
        text = tokenizer.encode(f"{PROMPTS[kind]}\n", add_special_tokens=False).ids
        return [mark + 1] * _PATCHES + [1, *text]
    return [
        each
        for piece in tokenizer.encode(PROMPTS[kind]).ids
        for each in ([mark] * _PATCHES if piece == mark else [piece])
    ]


def add_mark(tokenizer: Tokenizer) -> None:
    """Of a picture in a prompt, and START of a text, as tokenizers of LLaVA have them."""
    tokenizer.add_special_tokens([AddedToken("<image>", normalized=False, special=True)])
    tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A", None, [("[CLS]", 1)])


def _blip2(words: int) -> Any:
    text = {
        "model_type": "opt",
        "vocab_size": words + 1,  # and the mark of a picture's places
        "hidden_size": 24,
        "word_embed_proj_dim": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "ffn_dim": 40,
        "max_position_embeddings": 27,
        **_EDGES,
    }
    config = transformers.Blip2Config(
        vision_config=_SEEN,
        qformer_config={**_SIZES, "hidden_size": 16, "encoder_hidden_size": 32},
        text_config=text,
        num_query_tokens=_QUERIES,
        image_token_index=words,
    )
    return _random(transformers.Blip2ForConditionalGeneration(config))


def _paligemma(words: int) -> Any:
    text = {
        "model_type": "gemma",
        "vocab_size": words + 1,
        "hidden_size": 24,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "intermediate_size": 40,
        "max_position_embeddings": _PATCHES + 256 + 24,
        **_EDGES,
    }
    config = transformers.PaliGemmaConfig(
        vision_config={"model_type": "siglip_vision_model", "vision_use_head": False, **_SEEN},
        text_config=text,
        image_token_index=words,
        projection_dim=24,
        hidden_size=24,
    )
    return _random(transformers.PaliGemmaForConditionalGeneration(config))


def _llava(words: int, tower: dict[str, Any], text: dict[str, Any], **more: Any) -> Any:
    """`words` with the mark of a picture, the last."""
    sizes = {"vocab_size": words, "hidden_size": 24, "max_position_embeddings": _PATCHES + 256 + 24}
    config = transformers.LlavaConfig(
        vision_config={**_SEEN, **tower},
        text_config={**_SIZES, **sizes, **_EDGES, **text},
        image_token_index=words - 1,
        **more,
    )
    return _random(transformers.LlavaForConditionalGeneration(config))


def _llava_llama(words: int) -> Any:
    text = {"model_type": "llama", "num_key_value_heads": 2}
    return _llava(words, {"model_type": "clip_vision_model"}, text)


def _llava_qwen2(words: int) -> Any:
    return _llava(
        words,
        {"model_type": "siglip_vision_model", "vision_use_head": False},
        {"model_type": "qwen2", "num_key_value_heads": 4, "tie_word_embeddings": True},
        vision_feature_select_strategy="full",
        vision_feature_layer=-1,
    )


def _swin(words: int) -> Any:
    """Of pictures of 8 and of 4 places in a row, in windows of 4 that are moved in every second."""
    encoder = transformers.SwinConfig(
        image_size=32, patch_size=4, embed_dim=12, depths=[2, 2], num_heads=[2, 3], window_size=4
    )
    return _random(_with_gpt2(encoder, words))


def _beit(words: int) -> Any:
    from transformers.models.beit.modeling_beit import BeitRelativePositionBias  # two seconds

    # The library keeps an index that was made in inference mode; no training can use it afterwards.
    index = BeitRelativePositionBias.generate_relative_position_index
    kept = getattr(index, "__wrapped__", index)
    BeitRelativePositionBias.generate_relative_position_index = staticmethod(kept)
    encoder = transformers.BeitConfig(
        **_SEEN, use_relative_position_bias=True, use_absolute_position_embeddings=True
    )
    return _random(_with_gpt2(encoder, words))


def _with_gpt2(encoder: Any, words: int) -> Any:
    decoder = transformers.GPT2Config(
        vocab_size=words, n_positions=24, n_embd=24, n_layer=2, n_head=4
    )
    both = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    return transformers.VisionEncoderDecoderModel(both)


def _random(model: Any) -> Any:
    """Otherwise its queries are zeros, and its first layers as good as that."""
    for values in model.parameters():
        if values.dim() > 1:
            torch.nn.init.normal_(values, std=0.2)
    return model


MAKE = {
    "swin-gpt2": _swin,
    "beit-gpt2": _beit,
    "blip2-opt": _blip2,
    "paligemma": _paligemma,
    "llava-llama": _llava_llama,
    "llava-qwen2": _llava_qwen2,
}
IN_PLACES = ("blip2-opt", *PROMPTS)
OF_BYTES = ("swin-gpt2", "beit-gpt2", *IN_PLACES)
PROCESSORS = {
    "swin-gpt2": "ViT",
    "beit-gpt2": "Beit",
    "blip2-opt": "Blip",
    "paligemma": "Siglip",
    "llava-qwen2": "Siglip",
}
