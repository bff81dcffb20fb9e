"""Types of models of transformers, as config.json names them (`model_type`): those that are read,
each because a test has compared it with the library's own, and why others are not.
"""

import os
from collections.abc import Mapping

ADMITTING = "PRESCORE_MODEL_TYPES"  # types that an operator lets in without a test, with commas
READ = (
    *("vision-encoder-decoder", "blip", "git"),
    *("aria", "aya_vision", "blip-2", "cohere2_vision", "cohere_compass", "cosmos3_edge"),
    *("cosmos3_omni", "deepseek_vl", "deepseek_vl_hybrid", "ernie4_5_vl_moe", "exaone4_5"),
    *("florence2", "gemma3", "gemma4", "glm46v", "glm4v", "glm4v_moe", "glm5_next", "glm_ocr"),
    *("glmga", "got_ocr2", "granite_docling", "hyperclovax_vision_v2", "idefics2", "idefics3"),
    *("instructblip", "internvl", "janus", "kosmos-2", "kosmos-2.5", "lfm2_vl", "lfm3_vl"),
    *("lighton_ocr", "llava", "llava_next", "llava_next_video", "llava_onevision", "minicpm_ocr"),
    *("minicpmv4_6", "minicpmv4_7", "minimax_m3_vl", "mistral3", "mistral_large4", "mllama"),
    *("ovis2", "paddleocr_vl", "paligemma", "pix2struct", "pp_chart2table", "qianfan_ocr"),
    *("qwen2_5_vl", "qwen2_vl", "qwen3_5", "qwen3_5_moe", "qwen3_vl", "qwen3_vl_moe"),
    *("shieldgemma2", "smolvlm", "step3p7", "t5gemma2", "video_llama_3", "video_llava"),
    "vipllava",
)
# Of those, the ones whose pictures the library prepares with torchvision alone.
WITH_TORCHVISION = ("cohere2_vision", "lfm2_vl", "minicpm_ocr", "minimax_m3_vl", "step3p7")
DECODERS = ("gpt2", "bert")  # of a vision-encoder-decoder
_NO_TIMM = "it needs timm, which workers do not have"
_PART = "it is a part of an omni model, whose folder has another type"
_NOT_SEEN = "no test has read it yet"
NOT_READ: Mapping[str, str] = {
    "chameleon": _NOT_SEEN,
    "deepseek_ocr2": _NOT_SEEN,
    "diffusion_gemma": "it writes by diffusion, not word by word",
    "dots3_note": _NOT_SEEN,
    "emu3": _NOT_SEEN,
    "evolla": "it reads proteins, not pictures",
    "fast_vlm": _NO_TIMM,
    "fuyu": _NOT_SEEN,
    "gemma3n": _NO_TIMM,
    "gemma4_unified": _NOT_SEEN,
    "granite4_vision": _NOT_SEEN,
    "hunyuan_vl": "its words behind a cache differ from its own pass by 0.004",
    "idefics": "it wants its pictures again for each word",
    "inkling2": _NOT_SEEN,
    "inkling_mm_model": _NOT_SEEN,
    "instructblipvideo": "it reads films, not pictures",
    "kimi_k25": _NOT_SEEN,
    "llama4": _NOT_SEEN,
    "mistral4": "it reads text alone",
    "molmo2": _NOT_SEEN,
    "muse_glimmer": _NOT_SEEN,
    "muse_spark": _NOT_SEEN,
    "nemotron_h_omni": _NOT_SEEN,
    "perception_lm": _NO_TIMM,
    "pi0": "it moves robots and writes no captions",
    "pp_formulanet": _NOT_SEEN,
    "qwen2_5_omni_thinker": _PART,
    "qwen3_omni_moe_thinker": _PART,
    "qwen4_exp": "its cache cannot be repeated for several captions",
    "udop": "it reads the words of a page and their places besides its picture",
    "unlimited_ocr": _NOT_SEEN,
}


def describe_model_types() -> str:
    """Describe them as the guide does: a paragraph and a table."""
    names = ", ".join(f"`{name}`" for name in READ)
    torchvision = ", ".join(f"`{name}`" for name in WITH_TORCHVISION)
    rows = "\n".join(f"| `{name}` | {reason} |" for name, reason in NOT_READ.items())
    return (
        f"{len(READ)} types are read: {names}. Of these, {torchvision} need torchvision on the "
        "workers, by which the library prepares their pictures.\n\n"
        f"| `model_type` | why it is not read |\n|---|---|\n{rows}\n"
    )


def is_read(model_type: object) -> bool:
    return model_type in READ or model_type in os.environ.get(ADMITTING, "").split(",")
