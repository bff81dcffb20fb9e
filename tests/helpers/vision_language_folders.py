"""Folders of tiny vision-language models with their processors, as transformers saves them."""

import inspect
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
import transformers
from tokenizers import AddedToken

from helpers import tokenizer_files

END = 2
_TEXT = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 1024,
    "bos_token_id": 1,
    "eos_token_id": END,
    "pad_token_id": 0,
}
_VISION = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 56,
    "patch_size": 14,
}
_CHAT = (
    "{% for m in messages %}<|{{ m.role }}|>{% for c in m.content %}{% if c.type == 'image' %}MARK"
    "{% else %}{{ c.text }}{% endif %}{% endfor %}[SEP]{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


_SPREADS = {"blip-2": 1.0}  # its queries lose what they read of a picture by smaller weights


class SavedModel(NamedTuple):
    """A folder, the library's own model and processor of it, and the text that a prompt becomes."""

    folder: Path
    model: Any
    processor: Any
    text: str


def _tokenizer(*marks: str, **named: str) -> Any:
    pieces = tokenizer_files.byte_pieces()
    special = ["<|user|>", "<|assistant|>", *marks, *named.values()]
    pieces.add_special_tokens(
        [AddedToken(each, normalized=False, special=True) for each in dict.fromkeys(special)]
    )
    return transformers.TokenizersBackend(
        tokenizer_object=pieces,
        bos_token="[CLS]",
        eos_token="[SEP]",
        pad_token="[PAD]",
        extra_special_tokens=named,
    )


def _unchecked(kind: Any) -> Any:
    """The same class, which takes None as a processor of films."""
    return type(kind.__name__, (kind,), {"check_argument_for_proper_class": lambda *_: None})


def _qwen2_5_vl() -> tuple[Any, Any]:
    tokenizer = _tokenizer("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
    ids = tokenizer.convert_tokens_to_ids
    config = transformers.Qwen2_5_VLConfig(
        text_config={
            **_TEXT,
            "vocab_size": len(tokenizer),
            "rope_parameters": {
                "rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 1, 1]
            },
        },
        vision_config={
            "hidden_size": 16, "intermediate_size": 24, "depth": 2, "num_heads": 2,
            "out_hidden_size": 32, "patch_size": 14, "fullatt_block_indexes": [1],
            "window_size": 56,
        },
        image_token_id=ids("<|image_pad|>"),
        video_token_id=ids("<|video_pad|>"),
        vision_start_token_id=ids("<|vision_start|>"),
        vision_end_token_id=ids("<|vision_end|>"),
    )  # fmt: skip
    model = transformers.Qwen2_5_VLForConditionalGeneration(config)
    looks = transformers.Qwen2VLImageProcessorPil(min_pixels=28 * 28, max_pixels=28 * 28 * 12)
    mark = "<|vision_start|><|image_pad|><|vision_end|>"
    return model, _unchecked(transformers.Qwen2_5_VLProcessor)(
        looks, tokenizer, None, chat_template=_CHAT.replace("MARK", mark)
    )


def _llava() -> tuple[Any, Any]:
    tokenizer = _tokenizer("<image>")
    config = transformers.LlavaConfig(
        text_config=transformers.LlamaConfig(**{**_TEXT, "vocab_size": len(tokenizer)}),
        vision_config=transformers.CLIPVisionConfig(**_VISION),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    looks = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": 56}, crop_size={"height": 56, "width": 56}
    )
    processor = transformers.LlavaProcessor(
        looks, tokenizer, patch_size=14, vision_feature_select_strategy="default",
        num_additional_image_tokens=1, chat_template=_CHAT.replace("MARK", "<image>"),
    )  # fmt: skip
    return transformers.LlavaForConditionalGeneration(config), processor


def _gemma3() -> tuple[Any, Any]:
    tokenizer = _tokenizer(image_token="<image_soft>", boi_token="<boi>", eoi_token="<eoi>")
    ids = tokenizer.convert_tokens_to_ids
    config = transformers.Gemma3Config(
        text_config=transformers.Gemma3TextConfig(
            **{**_TEXT, "vocab_size": len(tokenizer), "sliding_window": 8,
               "query_pre_attn_scalar": 8, "layer_types": ["sliding_attention", "full_attention"]}
        ),
        vision_config=transformers.SiglipVisionConfig(**_VISION),
        image_token_id=ids("<image_soft>"), boi_token_index=ids("<boi>"),
        eoi_token_index=ids("<eoi>"), mm_tokens_per_image=4,
    )  # fmt: skip
    looks = transformers.Gemma3ImageProcessorPil(size={"height": 56, "width": 56})
    processor = transformers.Gemma3Processor(
        looks, tokenizer, chat_template=_CHAT.replace("MARK", "<boi>"), image_seq_length=4
    )
    return transformers.Gemma3ForConditionalGeneration(config), processor


def _idefics3() -> tuple[Any, Any]:
    tokenizer = _tokenizer(
        "<end_of_utterance>",
        "<fake_token_around_image>",
        "<image>",
        "<global-img>",
        "<row_1_col_1>",
    )
    config = transformers.Idefics3Config(
        text_config=transformers.LlamaConfig(**{**_TEXT, "vocab_size": len(tokenizer)}),
        vision_config={**_VISION, "image_size": 64, "patch_size": 16},
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"), scale_factor=2, pad_token_id=0,
    )  # fmt: skip
    looks = transformers.Idefics3ImageProcessorPil(
        size={"longest_edge": 64}, max_image_size={"longest_edge": 64}
    )
    processor = transformers.Idefics3Processor(
        looks, tokenizer, image_seq_len=4, chat_template=_CHAT.replace("MARK", "<image>")
    )
    return transformers.Idefics3ForConditionalGeneration(config), processor


def _internvl() -> tuple[Any, Any]:
    tokenizer = _tokenizer(
        start_image_token="<img>", end_image_token="</img>", context_image_token="<IMG_CONTEXT>",
        video_token="<video>",
    )  # fmt: skip
    config = transformers.InternVLConfig(
        text_config=transformers.Qwen2Config(**{**_TEXT, "vocab_size": len(tokenizer)}),
        vision_config={**_VISION, "image_size": [56, 56], "patch_size": [14, 14]},
        image_token_id=tokenizer.convert_tokens_to_ids("<IMG_CONTEXT>"), downsample_ratio=0.5,
    )  # fmt: skip
    looks = transformers.GotOcr2ImageProcessorPil(
        size={"height": 56, "width": 56}, crop_to_patches=True, min_patches=1, max_patches=3
    )
    processor = _unchecked(transformers.InternVLProcessor)(
        looks,
        tokenizer,
        None,
        image_seq_length=4,
        chat_template=_CHAT.replace("MARK", "<IMG_CONTEXT>\n"),
    )
    return transformers.InternVLForConditionalGeneration(config), processor


def _paligemma() -> tuple[Any, Any]:
    tokenizer = _tokenizer("<image>")
    looks = transformers.SiglipImageProcessorPil(size={"height": 56, "width": 56})
    looks.image_seq_length = 16
    processor = transformers.PaliGemmaProcessor(looks, tokenizer)
    config = transformers.PaliGemmaConfig(
        text_config=transformers.GemmaConfig(**{**_TEXT, "vocab_size": len(processor.tokenizer)}),
        vision_config=transformers.SiglipVisionConfig(**_VISION, projection_dim=32),
        image_token_index=processor.tokenizer.convert_tokens_to_ids("<image>"), projection_dim=32,
    )  # fmt: skip
    return transformers.PaliGemmaForConditionalGeneration(config), processor


def _blip_2() -> tuple[Any, Any]:
    tokenizer = _tokenizer("<image>")
    tokenizer.image_token = AddedToken("<image>", normalized=False, special=True)
    edges = {name: _TEXT[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    text = {
        "model_type": "opt", "vocab_size": len(tokenizer), "hidden_size": 24, "ffn_dim": 40,
        "word_embed_proj_dim": 24, "num_hidden_layers": 2, "num_attention_heads": 4, **edges,
        "max_position_embeddings": 80,
    }  # fmt: skip
    config = transformers.Blip2Config(
        vision_config={**_VISION, "num_attention_heads": 4},
        qformer_config={"hidden_size": 16, "encoder_hidden_size": 16, "num_hidden_layers": 2,
                        "num_attention_heads": 4, "intermediate_size": 24},
        text_config=text, num_query_tokens=3,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )  # fmt: skip
    looks = transformers.BlipImageProcessorPil(size={"height": 56, "width": 56})
    processor = transformers.Blip2Processor(looks, tokenizer, num_query_tokens=3)
    return transformers.Blip2ForConditionalGeneration(config), processor


MAKERS = {
    "blip-2": _blip_2,
    "qwen2_5_vl": _qwen2_5_vl,
    "llava": _llava,
    "gemma3": _gemma3,
    "idefics3": _idefics3,
    "internvl": _internvl,
    "paligemma": _paligemma,
}


def save_model(folder: Path, kind: str, *, prompt: str = "one is", seed: int = 0) -> SavedModel:
    """Save a random model. A folder without a template for chats has its prompt in prompt.json."""
    torch.manual_seed(seed)
    model, processor = MAKERS[kind]()
    with torch.no_grad():
        for each in model.parameters():
            each.normal_(0, _SPREADS.get(kind, 0.3))
    model.eval()
    model.generation_config.update(eos_token_id=END, bos_token_id=1, pad_token_id=0)
    model.save_pretrained(folder)
    _save_processor(folder, processor)
    text = f"<image>{prompt}" if kind == "paligemma" else prompt  # as its processor would
    if processor.chat_template is not None:
        content = [{"type": "image"}, {"type": "text", "text": prompt}]
        text = processor.apply_chat_template(
            [{"role": "user", "content": content}], add_generation_prompt=True, tokenize=False
        )
    (folder / "prompt.json").write_text(json.dumps({"prompt": prompt}))
    return SavedModel(folder, model, processor, text)


def _save_processor(folder: Path, processor: Any) -> None:
    """As `save_pretrained` does, which asks for a processor of films where there is none."""
    processor.tokenizer.save_pretrained(folder)
    processor.image_processor.save_pretrained(folder)
    own = {
        name: value
        for name in ("patch_size", "vision_feature_select_strategy", "num_additional_image_tokens",
                     "image_seq_length", "image_seq_len", "num_query_tokens")
        if isinstance(value := getattr(processor, name, None), int | str)
    }  # fmt: skip
    (folder / "processor_config.json").write_text(json.dumps(own))
    if processor.chat_template is not None:
        (folder / "chat_template.jinja").write_text(processor.chat_template)


def make_inputs(saved: SavedModel, picture: Any, words: Sequence[int] = ()) -> dict[str, Any]:
    """What the library takes for a picture, the prompt and these words behind it."""
    found = dict(saved.processor(images=[picture], text=[saved.text], return_tensors="pt"))
    given = {name: each for name, each in found.items() if name in _taken(saved)}
    ids, behind = given["input_ids"], torch.tensor([list(words)], dtype=torch.long)
    given["input_ids"] = torch.cat([ids, behind], dim=1)
    given["attention_mask"] = torch.ones_like(given["input_ids"])
    is_paligemma = saved.model.config.model_type == "paligemma"  # reads its prefix both ways
    for name in ("token_type_ids", "mm_token_type_ids"):
        if name in given:
            first = torch.zeros_like(ids) if is_paligemma else given[name]
            given[name] = torch.cat([first, torch.full_like(behind, int(is_paligemma))], dim=1)
    return given


def _taken(saved: SavedModel) -> set[str]:
    return {*inspect.signature(saved.model.forward).parameters} - {"labels"}


@torch.no_grad()
def rank_words(saved: SavedModel, picture: Any, words: Sequence[int]) -> tuple[Any, Any]:
    """The library's log-probability of each of these words, END among them, and how many words are
    more probable, by one pass without a cache.
    """
    logits = saved.model(**make_inputs(saved, picture, words)).logits[0, -len(words) - 1 : -1]
    every = logits.log_softmax(-1)
    chosen = every.gather(1, torch.tensor(words)[:, None])
    return chosen[:, 0], (every > chosen).sum(1)


def log_probabilities(saved: SavedModel, picture: Any, words: Sequence[int]) -> torch.Tensor:
    return rank_words(saved, picture, words)[0]


def generate(saved: SavedModel, picture: Any, **how: Any) -> list[int]:
    """Ids of the library's own caption, without END."""
    given = make_inputs(saved, picture)
    with torch.no_grad():
        row = saved.model.generate(**given, do_sample=False, **how)[0].tolist()
    row = row[given["input_ids"].shape[1] :]
    return row[: row.index(END)] if END in row else row


def train(saved: SavedModel, pictures: Sequence[Any], captions: Sequence[str], steps: int) -> None:
    """Train by the library's own loss, and save again."""
    pieces = saved.processor.tokenizer
    optimiser = torch.optim.Adam(saved.model.parameters(), lr=1e-2)
    saved.model.train()
    for _ in range(steps):
        optimiser.zero_grad()
        for picture, caption in zip(pictures, captions, strict=True):
            words = [*pieces.encode(caption, add_special_tokens=False), END]
            loss(saved, picture, words).backward()
        optimiser.step()
    saved.model.eval()
    saved.model.save_pretrained(saved.folder)


def loss(saved: SavedModel, picture: Any, words: Sequence[int]) -> torch.Tensor:
    """The library's own mean cross-entropy of these words."""
    given = make_inputs(saved, picture, words)
    labels = given["input_ids"].clone()
    labels[:, : -len(words)] = -100
    return saved.model(**given, labels=labels).loss
