"""Opens a captioner that transformers has saved: judged first, built of the checked config, with
weights that we have read; the library sees no file.
"""

import math
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from service.contract.errors import UnusableCheckpoint
from service.contract.formats import huggingface, packages
from service.contract.formats.huggingface import Captioner, Family, Generation
from service.contract.settings import Sandbox
from workers.inference import memory, pieces
from workers.inference.captioners import Search
from workers.inference.huggingface import networks, prompts, weights
from workers.inference.huggingface.captioner import Transformer
from workers.inference.pieces import Pieces
from workers.inference.prepared import Preparation

_FLOAT32 = 4
_PROGRAM = 900_000_000  # torch, transformers and the largest batches
_UNUSED = "pooler."  # weights that no output depends on


def read(
    path: Path,
    device: torch.device | str = "cpu",
    limit: int | None = None,
    sandbox: Sandbox = "required",
) -> Transformer:
    """The captioner in a package, in float32 on `device`; pictures are decoded in the sandbox.

    Raises InvalidCheckpoint and OutOfMemory before a tensor is read, and UnusableCheckpoint.
    """
    with packages.opened(path) as package:
        judged = huggingface.judge(package)
        _check_memory(judged, torch.device(device), limit)
        tokenizer = pieces.tokenizer(package, huggingface.TOKENIZER, judged.family.vocabulary)
        tensors = weights.read(package, judged)
    prompt = prompts.of(tokenizer, judged)
    model = _built(judged.family, tensors, torch.device(device))
    del tensors
    tokens = Pieces(
        tokenizer, judged.family.vocabulary, prompt.start, judged.end, judged.family.positions
    )
    preparation = Preparation.of(judged.preprocessing, sandbox)
    search = _search(judged.generation, judged.family)
    return Transformer(networks.parts_of(model, prompt), tokens, preparation, search, judged)


def _check_memory(judged: Captioner, device: torch.device, limit: int | None) -> None:
    """The weights once as they are read and once as they are packed, and the file's pages."""
    sizes = sum(math.prod(shape) for shape in judged.family.shapes().values())
    needs = 2 * _FLOAT32 * sizes + weights.stored_bytes(judged.tensors.values()) + _PROGRAM
    memory.check_captioner(judged.parameters, needs, device, limit)


def _built(family: Family, tensors: Mapping[str, Tensor], device: torch.device) -> Any:
    os.environ["HF_HUB_OFFLINE"] = "1"  # before the library is imported
    os.environ["HF_DEACTIVATE_ASYNC_LOAD"] = "1"  # by no threads: the sandbox has none
    import transformers
    from transformers.utils import logging

    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    kinds: dict[str, tuple[Any, Any]] = {
        "vision-encoder-decoder": (
            transformers.VisionEncoderDecoderConfig,
            transformers.VisionEncoderDecoderModel,
        ),
        "blip": (transformers.BlipConfig, transformers.BlipForConditionalGeneration),
        "blip-2": (transformers.Blip2Config, transformers.Blip2ForConditionalGeneration),
        "git": (transformers.GitConfig, transformers.GitForCausalLM),
        "llava": (transformers.LlavaConfig, transformers.LlavaForConditionalGeneration),
        "paligemma": (
            transformers.PaliGemmaConfig,
            transformers.PaliGemmaForConditionalGeneration,
        ),
    }
    values = family.model_dump(exclude_none=True)
    config_class, model_class = kinds[values.pop("model_type")]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, report = model_class.from_pretrained(
                None,
                config=config_class(**_as_decoder(values)),
                state_dict=dict(tensors),
                dtype=torch.float32,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
            )
    except Exception as error:  # noqa: BLE001  the library may raise anything
        raise UnusableCheckpoint(f"the library cannot build it: {error!r:.300}") from None
    wrong = [name for name in report["missing_keys"] if _UNUSED not in name]
    wrong += [*report["unexpected_keys"], *report["mismatched_keys"]]
    if wrong:
        raise UnusableCheckpoint(
            f"{len(wrong)} tensors do not fit the library's network, the first is {wrong[0]!s:.100}"
        )
    return model.to(device).eval().requires_grad_(requires_grad=False)


def _as_decoder(values: dict[str, Any]) -> dict[str, Any]:
    if "decoder" not in values:
        return values
    decoder = {**values["decoder"], "is_decoder": True, "add_cross_attention": True}
    return {**values, "decoder": decoder}


def _search(found: Generation, family: Family) -> Search:
    """Captions end where the model has no more positions."""
    most = min(found.most, family.positions)
    return Search(
        beams=found.num_beams,
        most=most,
        least=min(found.least, most),
        length_penalty=found.length_penalty,
        early_stopping=found.early_stopping,
        forced_first=found.forced_bos_token_id,
        forced_last=found.forced_eos_token_id,
        never=tuple(found.suppress_tokens or ()),
        never_first=tuple(found.begin_suppress_tokens or ()),
        repetition_penalty=found.repetition_penalty,
        no_repeat_ngram=found.no_repeat_ngram_size,
        longest=family.positions,
    )
