"""Tiny random networks of every type that transformers calls image-text-to-text, and crude inputs
for them: a picture of noise, its places, and some words.
"""

import copy
import inspect
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import GenerationConfig
from transformers.models.auto import configuration_auto, modeling_auto

from workers.inference.captioners import GenerationOptions
from workers.inference.devices import freeze_layers
from workers.inference.huggingface import library
from workers.inference.huggingface.image_text_captioner import ImageTextCaptioner
from workers.inference.huggingface.image_text_reader import ImageTextReader
from workers.inference.vocabulary import EncodedCaptions

WORDS, FIRST, END = 320, 260, 7  # pieces; from `FIRST` on they are marks; what ends a caption
_PATCHES = 16
_LARGEST = 224  # side of a picture
_SIZES = {
    **dict.fromkeys(
        ["hidden_size", "d_model", "embed_dim", "out_hidden_size", "text_hidden_size", "width",
         "projection_dim", "projector_hidden_size", "dim", "mm_hidden_size", "n_embd",
         "embed_dims", "word_embed_proj_dim",
         "encoder_hidden_size", "vision_output_dim", "output_hidden_size"], 32),
    **dict.fromkeys(
        ["intermediate_size", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "mlp_dim", "d_ff",
         "moe_intermediate_size", "shared_expert_intermediate_size", "intermediate_dim",
         "projector_intermediate_size", "mlp_hidden_size"], 48),
    **dict.fromkeys(
        ["num_hidden_layers", "num_layers", "depth", "encoder_layers", "decoder_layers", "layers",
         "n_layers", "num_decoder_layers", "n_layer"], 2),
    **dict.fromkeys(
        ["num_attention_heads", "num_heads", "encoder_attention_heads", "n_heads", "heads",
         "decoder_attention_heads", "n_head", "linear_num_value_heads", "linear_num_heads"], 4),
    **dict.fromkeys(["num_key_value_heads", "linear_num_key_heads", "num_kv_heads"], 2),
    **dict.fromkeys(
        ["head_dim", "d_kv", "linear_key_head_dim", "linear_value_head_dim", "qk_rope_head_dim",
         "qk_nope_head_dim", "v_head_dim", "qk_head_dim", "global_head_dim", "linear_head_dim"], 8),
    **dict.fromkeys(["num_experts", "n_routed_experts", "num_local_experts", "moe_num_experts"], 4),
    **dict.fromkeys(["num_experts_per_tok", "moe_k", "moe_topk", "top_k_experts"], 2),
    **dict.fromkeys(["n_group", "topk_group", "num_global_layers"], 1),
    **dict.fromkeys(["kv_lora_rank", "q_lora_rank"], 16),
    "vocab_size": WORDS,
}  # fmt: skip
_IN_SECTIONS = (  # rotary positions, though the usual configuration does not say so
    *(
        "cosmos3_omni",
        "glm46v",
        "glm4v",
        "glm4v_moe",
        "glm_ocr",
        "glmga",
        "paddleocr_vl",
        "qwen2_vl",
    ),
    *("qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "qwen4_exp"),
    *(
        "qwen2_5_omni_thinker",
        "qwen3_omni_moe_thinker",
        "minicpm_ocr",
        "minicpmv4_6",
        "minicpmv4_7",
    ),
    *("cosmos3_edge", "hunyuan_vl"),
)
_OF_LAYERS = ("layer_types", "mlp_layer_types")
_TURNS = {"rope_type": "default", "rope_theta": 1e4}
_SET: Mapping[str, Mapping[str, Any]] = {  # of types, what the sizes above do not fit
    "aria": {"vision_config.image_size": 490, "projector_patch_to_query_dict": {225: 128}},
    "aya_vision": {"vision_config.image_size": 392},
    "blip-2": {"image_token_index": 310},
    "deepseek_vl_hybrid": {"high_res_vision_config.global_attn_indexes": [1]},
    "minicpm_ocr": {"image_token_id": 262},
    "minicpmv4_6": {"image_token_id": 262},
    "minicpmv4_7": {"image_token_id": 262},
    "mllama": {
        "vision_config.intermediate_layers_indices": [0, 1], "vision_config.vision_output_dim": 96,
        "text_config.cross_attention_layers": [1], "vision_config.image_size": 56,
    },
    "cohere_compass": {
        "text_config.rope_parameters": {"full_attention": _TURNS, "sliding_attention": _TURNS}
    },
    "deepseek_ocr2": {"text_config.mlp_layer_types": ["dense", "sparse"]},
    "ernie4_5_vl_moe": {"text_config.rope_parameters": {**_TURNS, "mrope_section": [1, 1, 2]}},
    "florence2": {
        "text_config.pad_token_id": 1, "vision_config.depths": [1, 1],
        "vision_config.embed_dim": [16, 32], "vision_config.num_heads": [2, 4],
        "vision_config.num_groups": [2, 4], "vision_config.patch_size": [7, 3],
        "vision_config.patch_stride": [4, 2], "vision_config.patch_padding": [3, 1],
        "vision_config.patch_prenorm": [False, True], "vision_config.projection_dim": 32,
    },
    "gemma3": {"mm_tokens_per_image": 16},
    "gemma4": {
        "vision_config": {
            "model_type": "gemma4_vision", "hidden_size": 32, "intermediate_size": 48,
            "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 4,
            "head_dim": 8, "global_head_dim": 8, "patch_size": 4, "pooling_kernel_size": 2,
            "default_output_length": 4, "position_embedding_size": 64,
        },
        "text_config.hidden_size_per_layer_input": 8, "text_config.vocab_size_per_layer_input": 320,
    },
    "glm4v_moe": {"text_config.head_dim": 16},
    "glm5_next": {"text_config.num_key_value_heads": 4, "text_config.qk_rope_head_dim": 0},
    "granite_docling": {"vision_config.image_size": 512},
    "idefics3": {"vision_config.image_size": 128, "vision_config.patch_size": 16},
    "instructblip": {"image_token_index": 310},
    "kosmos-2.5": {"latent_query_num": 16},
    "llava_next": {"vision_config.image_size": 336},
    "llava_next_video": {"vision_config.image_size": 336},
    "llava_onevision": {"vision_config.image_size": 384},
    "mistral_large4": {
        "text_config.kv_source_layers": [0, 1], "text_config.num_key_value_heads": 4
    },
    "shieldgemma2": {"mm_tokens_per_image": 16},
    "smolvlm": {"vision_config.image_size": 128, "vision_config.patch_size": 16},
    "step3p7": {"text_config.sliding_window": 512},
    "t5gemma2": {"encoder.mm_tokens_per_image": 16},
    "vipllava": {"vision_feature_layers": [-1, -2]},
}  # fmt: skip


def list_types() -> list[str]:
    return list(modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)


def make_model(kind: str) -> Any:
    """Build the type's usual network in tiny sizes, with random weights."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = make_config(kind)
        model = modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING[type(config)](config)
    with torch.no_grad():
        for each in model.parameters():
            if each.dim() > 1:
                each.normal_(0, 0.2)
            else:
                each.add_(torch.randn_like(each), alpha=0.1 if each.numel() > 1 else 1)  # gates
    edges = {"eos_token_id": END, "pad_token_id": 0, "bos_token_id": 1}
    if config.is_encoder_decoder:
        edges["decoder_start_token_id"] = 1
    model.generation_config = GenerationConfig(**edges)
    return model.eval().requires_grad_(requires_grad=False)


def make_config(kind: str) -> Any:
    """The type's own configuration, every size shrunk."""
    made = configuration_auto.CONFIG_MAPPING[kind]
    values = _shrink(made().to_dict(), kind)
    for path, value in _SET.get(kind, {}).items():
        *parts, name = path.split(".")
        place = values
        for part in parts:
            place = place[part]
        place[name] = value
    values.pop("model_type", None)
    return made.from_dict(values)


def _shrink(values: dict[str, Any], kind: str) -> dict[str, Any]:
    found = {name: _shrink_one(name, value, kind) for name, value in values.items()}
    kinds = {name: list(dict.fromkeys(values.get(name) or ())) for name in _OF_LAYERS}
    layers = max(2, *map(len, kinds.values()))
    for name, each in kinds.items():
        if each:  # each kind of layers once
            found[name] = [each[min(at, len(each) - 1)] for at in range(layers)]
    if layers > 2:
        found["num_hidden_layers"] = layers
    return found


def _shrink_one(name: str, value: Any, kind: str) -> Any:
    if name == "deepstack_visual_indexes" and value:
        return [0, 1]
    if name == "per_layer_config":
        return {}
    if isinstance(value, dict):
        if name in ("rope_parameters", "rope_scaling"):
            return _shrink_turns(value, kind)
        return _shrink(value, kind) if "model_type" in value or name.endswith("config") else value
    if name in _SIZES and isinstance(value, int) and not isinstance(value, bool):
        return _SIZES[name]
    if name == "image_size" and isinstance(value, int):
        return min(value, _LARGEST)
    is_mark = name.endswith(("token_id", "token_index")) and isinstance(value, int)
    if is_mark and (value >= WORDS or not name.startswith(("bos", "eos", "pad", "decoder"))):
        return FIRST + sum(map(ord, name)) % (WORDS - FIRST - 10)
    return value


def _shrink_turns(value: dict[str, Any], kind: str) -> dict[str, Any]:
    found = {
        name: _shrink_turns(each, kind) if isinstance(each, dict) else each
        for name, each in value.items()
    }
    if "mrope_section" in found or (found and kind in _IN_SECTIONS):
        found["mrope_section"] = [2, 1, 1]
    return found


def make_inputs(model: Any) -> dict[str, torch.Tensor]:
    """Find the form of a picture that the network takes; raise the last error where none is it."""
    takes = {*inspect.signature(model.forward).parameters, *_list_taken(model)}
    problems = []
    for form in _list_forms(model, takes):
        try:
            inputs = {**form, **_write_prompt(model, form, takes)}
            _run(model, inputs)
        except Exception as error:  # noqa: BLE001  a form that is not taken raises anything
            problems.append(error)
            continue
        return inputs
    raise ExceptionGroup("no form of a picture is taken", problems)


def _run(model: Any, inputs: Mapping[str, torch.Tensor]) -> Any:
    given = dict(inputs)
    if model.config.is_encoder_decoder:
        given["decoder_input_ids"] = torch.ones(1, 1, dtype=torch.long)
    with torch.no_grad():
        return model(**given, use_cache=False)


def _list_forms(model: Any, takes: set[str]) -> Iterator[dict[str, torch.Tensor]]:
    """Yield pictures of noise in the forms that networks take."""
    seen = _find_part(model.config)
    side, patch = _get_number(seen, "image_size", 64), _get_number(seen, "patch_size", 14)
    frames = _get_number(seen, "temporal_patch_size", 2)
    noise = torch.Generator().manual_seed(1)

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=noise)

    grid = torch.tensor([[1, 4, 4]])
    sizes = torch.tensor([[side, side]])
    whole, tiled = draw(1, 3, side, side), draw(1, 1, 3, side, side)
    small = draw(_PATCHES, 3 * patch**2)
    square = draw(_PATCHES, 3, patch, patch)
    grids = [name for name in ("image_grid_thw", "grid_thws", "image_grid_hws") if name in takes]
    named = {
        name: value
        for name, value in {
            "pixel_mask": torch.ones(1, side, side, dtype=torch.bool),
            "high_res_pixel_values": draw(1, 3, *[_get_high_resolution(model.config)] * 2),
            "qformer_input_ids": torch.tensor([[3, 4]]),
            "qformer_attention_mask": torch.ones(1, 2, dtype=torch.long),
        }.items()
        if name in takes
    }
    merged = {"image_merge_sizes": torch.tensor([2])} if "image_merge_sizes" in takes else {}
    for name in grids:
        for pixels in (draw(_PATCHES, frames * 3 * patch**2), small, square, square[None]):
            yield {"pixel_values": pixels, name: grid, **merged}
    if "aspect_ratio_ids" in takes:
        yield {
            "pixel_values": draw(1, 1, 4, 3, side, side),
            "aspect_ratio_ids": torch.tensor([[1]]),
            "aspect_ratio_mask": torch.tensor([[[1, 0, 0, 0]]]),
        }
    if "image_position_ids" in takes:
        places = torch.cartesian_prod(torch.arange(4), torch.arange(4))[None]
        yield {"pixel_values": small[None].sigmoid(), "image_position_ids": places}
    if "spatial_shapes" in takes:
        yield {
            "pixel_values": small[None],
            "pixel_attention_mask": torch.ones(1, _PATCHES, dtype=torch.long),
            "spatial_shapes": torch.tensor([[4, 4]]),
        }
    if "flattened_patches" in takes:
        rows = torch.cat(
            [torch.arange(1.0, 17)[None, :, None].repeat(1, 1, 2), draw(1, 16, 768)], 2
        )
        yield {"flattened_patches": rows, "attention_mask": torch.ones(1, 16)}
    if "target_sizes" in takes:
        for pixels in (draw(1, 3, patch, _PATCHES * patch), small[None]):
            yield {"pixel_values": pixels, "target_sizes": torch.tensor([[4, 4]])}
    if "pixel_values_images" in takes:
        yield {"pixel_values_images": whole}
    if "image_sizes" in takes:
        for pixels in (whole, tiled, draw(1, 3, 3, side, side), draw(1, 5, 3, side, side)):
            yield {"pixel_values": pixels, "image_sizes": sizes, **named}
    if "pixel_attention_mask" in takes:
        yield {"pixel_values": tiled, "pixel_attention_mask": torch.ones(1, 1, dtype=torch.bool)}
    for pixels in (whole, tiled):
        yield {"pixel_values": pixels, **named}
        yield {"pixel_values": pixels}


def _write_prompt(
    model: Any, form: Mapping[str, torch.Tensor], takes: set[str]
) -> dict[str, torch.Tensor]:
    """Ids with as many marks of a picture as it has places, and what networks want beside them."""
    if "input_ids" not in takes:
        return {}
    config = model.config
    mark = 261 if "image_embeds_position_mask" in takes else _find_mark(config)
    before = [35, getattr(config, "vision_start_token_id", None) or 39]
    places = _count_places(model, form) if mark is not None else 0
    after = [getattr(config, "vision_end_token_id", None) or 41, 43, 47]
    ids = torch.tensor([[*before, *[mark] * places, *after]])
    found = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    for name in ("mm_token_type_ids", "token_type_ids"):
        if name in takes and mark is not None:
            found[name] = (ids == mark).long()
    if config.model_type == "paligemma":
        found["token_type_ids"] = torch.zeros_like(ids)
    if "image_embeds_position_mask" in takes:
        found["image_embeds_position_mask"] = (ids == mark).long()
    if "cross_attention_mask" in takes:
        found["cross_attention_mask"] = torch.ones(1, ids.shape[1], 1, 4, dtype=torch.long)
        found["cross_attention_mask"][..., 1:] = 0
    return found


def _find_mark(config: Any) -> int | None:
    names = ("image_token_id", "image_token_index", "image_patch_id", "im_patch_id")
    found = (getattr(config, name, None) for name in names)
    return next((each for each in found if isinstance(each, int)), None)


def _count_places(model: Any, form: Mapping[str, torch.Tensor]) -> int:
    for name in ("num_query_tokens", "latent_query_num"):
        if hasattr(model.config, name):
            return int(getattr(model.config, name))
    looks = _find_looks(model)
    if looks is None or "aspect_ratio_ids" in form:
        return 1
    accepted = _list_taken(model)
    given = {name: each for name, each in form.items() if name in accepted}
    with torch.no_grad():
        found = looks(**given)
    found = getattr(found, "pooler_output", found)
    if isinstance(found, (list, tuple)):
        return sum(each.reshape(-1, each.shape[-1]).shape[0] for each in found)
    return found.reshape(-1, found.shape[-1]).shape[0]


def _find_looks(model: Any) -> Any:
    """The function by which a network looks at pictures alone."""
    holders = (model, getattr(model, "model", None))
    return next(
        (each.get_image_features for each in holders if hasattr(each, "get_image_features")), None
    )


def _list_taken(model: Any) -> set[str]:
    found = (_find_looks(model), _find_looks(getattr(model, "model", None)))
    return {name for each in found if each for name in inspect.signature(each).parameters}


def _get_high_resolution(config: Any) -> int:
    return _get_number(getattr(config, "high_res_vision_config", None), "image_size", 64)


def _find_part(config: Any) -> Any:
    for name in ("vision_config", "vision_encoder_config", "image_config", "vq_config", "encoder"):
        if getattr(config, name, None) is not None:
            return _find_part(getattr(config, name))
    thinker = getattr(config, "thinker_config", None)
    return _find_part(thinker) if thinker is not None else config


def _get_number(config: Any, name: str, otherwise: int) -> int:
    found = getattr(config, name, None)
    found = found[0] if isinstance(found, (list, tuple)) else found
    return found if isinstance(found, int) else otherwise


class CrudeInputs:
    """Inputs of several images, each of which is one of some pictures, by its number. Pictures
    differ by noise.
    """

    def __init__(self, inputs: Mapping[str, torch.Tensor], pictures: Sequence[int]) -> None:
        self._inputs, self.pictures = inputs, pictures

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, rows: slice) -> "CrudeInputs":
        return CrudeInputs(self._inputs, self.pictures[rows])

    def group_alike(self, most: int) -> Iterator[tuple[list[int], dict[str, torch.Tensor]]]:
        for start in range(0, len(self), most):
            rows = list(range(start, min(start + most, len(self))))
            given = [draw_picture(self._inputs, self.pictures[row]) for row in rows]
            yield rows, {name: torch.cat([each[name] for each in given]) for name in given[0]}


def draw_picture(inputs: Mapping[str, torch.Tensor], picture: int) -> dict[str, torch.Tensor]:
    noise = torch.Generator().manual_seed(picture)
    return {
        name: each + 0.5 * torch.randn(each.shape, generator=noise)
        if name.startswith(("pixel_values", "flattened", "high_res"))
        else each
        for name, each in inputs.items()
    }


class LibraryAnswers:
    """The library's own answers about pictures and captions, each of which is asked for once."""

    def __init__(self, kind: str) -> None:
        self.model = make_model(kind)
        self.inputs = make_inputs(self.model)
        self._columns: dict[tuple[int, tuple[int, ...]], torch.Tensor] = {}
        self._captions: dict[tuple[int, int], list[int]] = {}

    def log_probabilities(self, picture: int, words: Sequence[int]) -> torch.Tensor:
        key = (picture, tuple(words))
        if key not in self._columns:
            given = draw_picture(self.inputs, picture)
            self._columns[key] = log_probabilities(self.model, given, words)
        return self._columns[key]

    def generate(self, picture: int, beams: int, most: int) -> list[int]:
        if (picture, beams) not in self._captions:
            given = draw_picture(self.inputs, picture)
            words = generate(self.model, given, num_beams=beams, max_new_tokens=most)
            self._captions[picture, beams] = words
        return self._captions[picture, beams]


class _Tokens(NamedTuple):
    size: int
    start: int
    end: int = END
    most: int = 100
    never: tuple[int, ...] = ()


class _CrudeCaptioner(ImageTextCaptioner):
    def check(self, inputs: Any) -> None:
        """Take what is no picture of a bundle."""


def make_captioner(model: Any, inputs: Mapping[str, torch.Tensor]) -> ImageTextCaptioner:
    """Make ours of a copy of the network, packed as the loader packs it."""
    network = copy.deepcopy(model)
    freeze_layers(network, library.find_output_layer(network))
    reader = ImageTextReader(network, 1 if model.config.is_encoder_decoder else None)
    given = reader.choose_inputs(inputs)
    with torch.inference_mode():
        reader.learn(given)
    tokens = _Tokens(reader.vocabulary, reader.list_written(given)[-1])
    judged: Any = None
    unused: Any = None
    return _CrudeCaptioner(reader, tokens, GenerationOptions(), judged, unused, 1 << 20, unused)  # type: ignore[arg-type]


def draw_references(counts: Sequence[int]) -> EncodedCaptions:
    """Draw so many different captions for each image, of nine, which have 1 to 7 pieces."""
    drawn = np.random.default_rng(0)
    every = [[*drawn.integers(50, 250, at % 7), END] for at in range(9)]
    chosen = [at for many in counts for at in drawn.choice(len(every), many, replace=False)]
    tokens = np.concatenate([every[at] for at in chosen])
    offsets = np.cumsum([0, *(len(every[at]) for at in chosen)])
    return EncodedCaptions(tokens, offsets, np.cumsum([0, *counts]), 1)


@torch.no_grad()
def log_probabilities(
    model: Any, inputs: Mapping[str, torch.Tensor], words: Sequence[int]
) -> torch.Tensor:
    """The library's, of each word, by one pass over all without a cache."""
    given = dict(inputs)
    if model.config.is_encoder_decoder:
        given["decoder_input_ids"] = torch.tensor([[1, *words[:-1]]])
        logits = model(**given, use_cache=False).logits[0]
    else:
        behind = torch.tensor([list(words)])
        given["input_ids"] = torch.cat([given["input_ids"], behind], dim=1)
        given["attention_mask"] = torch.ones_like(given["input_ids"])
        suffix = int(model.config.model_type == "paligemma")  # reads its prefix both ways
        for name in ("mm_token_type_ids", "token_type_ids", "image_embeds_position_mask"):
            if name in given:
                given[name] = torch.cat([given[name], torch.full_like(behind, suffix)], dim=1)
        if "cross_attention_mask" in given:
            mask = given["cross_attention_mask"]
            rows = mask[:, -1:].expand(-1, len(words), -1, -1)
            given["cross_attention_mask"] = torch.cat([mask, rows], dim=1)
        logits = model(**given, use_cache=False).logits[0, -len(words) - 1 : -1]
    return logits.log_softmax(-1).gather(1, torch.tensor(words)[:, None])[:, 0]


@torch.no_grad()
def generate(model: Any, inputs: Mapping[str, torch.Tensor], **how: Any) -> list[int]:
    """Ids of the library's own caption, without END."""
    row = model.generate(**inputs, do_sample=False, **how)[0].tolist()
    start = inputs["input_ids"].shape[1] if "input_ids" in inputs else 1
    row = row[1 if model.config.is_encoder_decoder else start :]
    return row[: row.index(END)] if END in row else row
