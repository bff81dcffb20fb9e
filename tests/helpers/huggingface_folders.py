"""Folders of small captioners as transformers saves them: with random weights, or trained for some
steps on made-up pictures until their captions end.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from tokenizers import AddedToken, Tokenizer, processors
from transformers.utils import logging

from helpers import tokenizer_files
from helpers.synthetic_pictures import pictures, sentences
from workers.inference import checkpoints
from workers.inference.captioners import Captioner

logging.set_verbosity_error()
logging.disable_progress_bar()

SIDE, POSITIONS = 32, 24
PAD, START, END = 0, 1, 2
_QUERIES, _PATCHES = 3, 16
PROMPTS = {
    "paligemma": "it is one",
    "llava-llama": "the <image> it is:",
    "llava-qwen2": "<image>\none is",
}


@dataclass(frozen=True)
class Saved:
    """A folder, and the library's own model of it."""

    folder: Path
    kind: str
    library: Any
    start: int
    end: int
    tokenizer: Tokenizer

    def logits(self, pixels: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        """The library's, of what follows each of the ids (n, m)."""
        if self.kind in IN_PLACES:
            found = self.library(pixel_values=pixels, **_beside(self, ids)).logits
        elif self.kind in ("blip", "git"):
            found = self.library(pixel_values=pixels, input_ids=ids).logits
        else:
            found = self.library(pixel_values=pixels, decoder_input_ids=ids).logits
        return found[:, -ids.shape[1] :]

    def generated(self, pixels: torch.Tensor, **how: Any) -> list[list[int]]:
        """Ids between START and END."""
        start, before = torch.full((len(pixels), 1), self.start), {}
        if self.kind in IN_PLACES:
            before = _beside(self, start)
        with torch.no_grad():
            rows = self.library.generate(pixel_values=pixels, **before, **how).tolist()
        skipped = before.get("input_ids", start).shape[1]
        after = [row[skipped:] for row in rows]
        return [row[: row.index(self.end)] if self.end in row else row for row in after]


def make(folder: Path, kind: str, *, trained: bool, seed: int = 0) -> Saved:
    torch.manual_seed(seed)
    is_gpt2 = kind == "vit-gpt2"
    of_bytes = is_gpt2 or kind in _OF_BYTES
    tokenizer = tokenizer_files.byte_pieces() if of_bytes else tokenizer_files.word_pieces()
    if kind.startswith("llava"):
        _add_mark(tokenizer)
    start, end = (END, END) if is_gpt2 else (START, END)
    model = _MAKE[kind](tokenizer.get_vocab_size()).eval()
    _set_generation(model, start, end)
    if kind in PROMPTS:
        start = _prompt_ids(kind, tokenizer)[-1]
    saved = Saved(folder, kind, model, start, end, tokenizer)
    if trained:
        _train(saved, tokenizer)
    else:
        _end_sooner(model, end)
    model.save_pretrained(folder)
    if kind in PROMPTS:
        (folder / "prompt.json").write_text(json.dumps({"prompt": PROMPTS[kind]}))
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        unk_token="[UNK]",
        pad_token="[PAD]",
        sep_token="[SEP]",
        cls_token="[CLS]",
    ).save_pretrained(folder)
    processor(kind).save_pretrained(folder)
    return saved


def processor(kind: str) -> Any:
    """The library's image processor of PIL pictures."""
    size = {"height": SIDE, "width": SIDE}
    if kind in ("git", "llava-llama"):
        return transformers.CLIPImageProcessorPil(size={"shortest_edge": 36}, crop_size=size)
    if kind == "deit-bert":
        return transformers.DeiTImageProcessorPil(size={"height": 40, "width": 36}, crop_size=size)
    named = {"vit-gpt2": "ViT", "blip": "Blip", **_PROCESSORS}
    return getattr(transformers, f"{named[kind]}ImageProcessorPil")(size=size)


def opened(saved: Saved, images: int) -> tuple[Captioner, np.ndarray]:
    """The captioner in the folder, and made-up pictures as it takes them."""
    shape, rows = processor(saved.kind), list(pictures(images, seed=3))
    fitted = shape(rows, do_rescale=False, do_normalize=False)["pixel_values"]
    return checkpoints.open_captioner(saved.folder), np.stack(fitted).transpose(0, 2, 3, 1)


def change(folder: Path, name: str, **values: Any) -> None:
    """Put values into a JSON file of a folder."""
    found = json.loads((folder / name).read_text())
    (folder / name).write_text(json.dumps({**found, **values}))


_SIZES = {"num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 40}
_SEEN = {**_SIZES, "image_size": SIDE, "patch_size": 8, "initializer_range": 0.2}


def _vit_gpt2(words: int) -> Any:
    decoder = transformers.GPT2Config(
        vocab_size=words,
        n_positions=POSITIONS,
        n_embd=24,
        n_layer=2,
        n_head=4,
        initializer_range=0.2,
        bos_token_id=END,
        eos_token_id=END,
    )
    return _encoder_decoder(transformers.ViTConfig(hidden_size=32, **_SEEN), decoder)


def _deit_bert(words: int) -> Any:
    decoder = transformers.BertConfig(
        vocab_size=words,
        hidden_size=24,
        max_position_embeddings=POSITIONS,
        initializer_range=0.2,
        **_SIZES,
    )
    return _encoder_decoder(transformers.DeiTConfig(hidden_size=24, **_SEEN), decoder)


def _encoder_decoder(encoder: Any, decoder: Any) -> Any:
    both = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(encoder, decoder)
    return transformers.VisionEncoderDecoderModel(both)


def _blip(words: int) -> Any:
    text = {
        **_SIZES,
        "vocab_size": words,
        "hidden_size": 24,
        "encoder_hidden_size": 32,
        "max_position_embeddings": POSITIONS,
        "bos_token_id": START,
        "sep_token_id": END,
        "eos_token_id": END,
        "pad_token_id": PAD,
        "initializer_range": 0.2,
    }
    config = transformers.BlipConfig(
        vision_config={"hidden_size": 32, **_SEEN}, text_config=text, initializer_range=0.2
    )
    return transformers.BlipForConditionalGeneration(config)


def _git(words: int) -> Any:
    config = transformers.GitConfig(
        vision_config={"hidden_size": 32, **_SEEN},
        vocab_size=words,
        hidden_size=24,
        max_position_embeddings=POSITIONS,
        bos_token_id=START,
        eos_token_id=END,
        pad_token_id=PAD,
        initializer_range=0.2,
        **_SIZES,
    )
    return transformers.GitForCausalLM(config)


def _set_generation(model: Any, start: int, end: int) -> None:
    for part in (
        model,
        *(getattr(model, name, None) for name in ("text_decoder", "language_model")),
    ):
        if getattr(part, "generation_config", None) is None:
            continue
        how = part.generation_config
        how.bos_token_id, how.eos_token_id, how.pad_token_id = start, end, PAD
        if part.config.is_encoder_decoder:
            how.decoder_start_token_id = start
    if model.config.model_type == "vision-encoder-decoder":
        model.config.decoder_start_token_id, model.config.pad_token_id = start, PAD
        model.config.eos_token_id = end


def _train(saved: Saved, tokenizer: Tokenizer, steps: int = 60) -> None:
    """Teacher forcing of all references at once, by the plain cross-entropy."""
    shape = processor(saved.kind)
    pixels = shape(list(pictures(15)), return_tensors="pt")["pixel_values"]
    rows, ids = [], []
    for image, captions in enumerate(sentences(15)):
        for caption in captions:
            pieces = tokenizer.encode(caption, add_special_tokens=False).ids
            ids.append(torch.tensor([saved.start, *pieces, saved.end]))
            rows.append(image)
    padded = torch.nn.utils.rnn.pad_sequence(ids, batch_first=True, padding_value=-1)
    read, targets = padded[:, :-1].clamp(min=0), padded[:, 1:]
    saved.library.train()
    optimiser = torch.optim.Adam(saved.library.parameters(), lr=1e-2)
    for _ in range(steps):
        logits = saved.logits(pixels[rows], read)
        loss = torch.nn.functional.cross_entropy(
            logits.flatten(0, 1), targets.flatten(), ignore_index=-1
        )
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    saved.library.eval()


def _end_sooner(model: Any, end: int) -> None:
    """What is random seldom says END; with this bias captions end after some pieces."""
    part = getattr(model, "decoder", None) or getattr(model, "text_decoder", model)
    output = part.get_output_embeddings()
    if output.bias is not None:
        with torch.no_grad():
            output.bias[end] += 1.5


_EXACT = {**_SIZES, "hidden_size": 32, "image_size": 32, "patch_size": 8}
_EDGES = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def _beside(saved: Saved, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """What the library takes for words `ids` (n, m) that begin with START, after a picture."""
    mark = saved.library.config.image_token_index
    if saved.kind == "blip2-opt":
        places = torch.full((len(ids), _QUERIES), mark)
        return {"input_ids": torch.cat([places, ids], dim=1)}
    first = torch.tensor([_prompt_ids(saved.kind, saved.tokenizer)[:-1]])
    read = torch.cat([first.expand(len(ids), -1), ids], dim=1)
    if saved.kind != "paligemma":
        return {"input_ids": read}
    is_caption = torch.arange(read.shape[1]) > first.shape[1]
    return {"input_ids": read, "token_type_ids": is_caption.long().expand(len(ids), -1)}


def _prompt_ids(kind: str, tokenizer: Tokenizer) -> list[int]:
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


def _add_mark(tokenizer: Tokenizer) -> None:
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
        vision_config=_EXACT,
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
        vision_config={"model_type": "siglip_vision_model", "vision_use_head": False, **_EXACT},
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
        vision_config={**_EXACT, **tower},
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
        **_EXACT, use_relative_position_bias=True, use_absolute_position_embeddings=True
    )
    return _random(_with_gpt2(encoder, words))


def _with_gpt2(encoder: Any, words: int) -> Any:
    decoder = transformers.GPT2Config(
        vocab_size=words, n_positions=24, n_embd=24, n_layer=2, n_head=4
    )
    return _encoder_decoder(encoder, decoder)


def _random(model: Any) -> Any:
    """Otherwise its queries are zeros, and its first layers as good as that."""
    for values in model.parameters():
        if values.dim() > 1:
            torch.nn.init.normal_(values, std=0.2)
    return model


_MAKE = {
    "vit-gpt2": _vit_gpt2,
    "deit-bert": _deit_bert,
    "blip": _blip,
    "git": _git,
    "swin-gpt2": _swin,
    "beit-gpt2": _beit,
    "blip2-opt": _blip2,
    "paligemma": _paligemma,
    "llava-llama": _llava_llama,
    "llava-qwen2": _llava_qwen2,
}
KINDS = tuple(_MAKE)
IN_PLACES = ("blip2-opt", *PROMPTS)
_OF_BYTES = ("swin-gpt2", "beit-gpt2", *IN_PLACES)
_PROCESSORS = {
    "swin-gpt2": "ViT",
    "beit-gpt2": "Beit",
    "blip2-opt": "Blip",
    "paligemma": "Siglip",
    "llava-qwen2": "Siglip",
}
