"""Opens a captioner that transformers has saved: judged first, built of the checked config, with
weights that we have read; the library sees no file.
"""

import io
import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from service.contract.errors import UnusableCheckpoint
from service.contract.formats import huggingface, packages
from service.contract.formats.huggingface import (
    GenerationSettings,
    TransformersCaptioner,
    TransformersFamily,
    tensors,
)
from service.contract.formats.huggingface.tensors import LocatedTensor
from service.contract.formats.packages import ModelPackage
from service.contract.settings import Sandbox
from workers.inference import checkpoint_checks, pieces
from workers.inference.captioners import GenerationOptions
from workers.inference.devices import pack_layers
from workers.inference.huggingface import captioner
from workers.inference.huggingface.captioner import EncoderAndDecoder, HuggingFaceCaptioner, Prompt
from workers.inference.huggingface.decoder_stack import Decoder, PictureProjection
from workers.inference.huggingface.decoders import (
    BertDecoder,
    GitDecoder,
    Gpt2Decoder,
    OptDecoder,
    RotaryDecoder,
)
from workers.inference.pieces import PieceTokens
from workers.inference.preprocessing import PicturePreparation

_FLOAT32 = 4
_PROGRAM = 900_000_000  # torch, transformers and the largest batches
_UNUSED = "pooler."  # weights that no output depends on


def read_captioner(
    path: Path,
    device: torch.device | str = "cpu",
    limit: int | None = None,
    sandbox: Sandbox = "required",
) -> HuggingFaceCaptioner:
    """The captioner in a package, in float32 on `device`; pictures are decoded in the sandbox.

    Raises InvalidCheckpoint and OutOfMemory before a tensor is read, and UnusableCheckpoint.
    """
    with packages.open_package(path) as package:
        judged = huggingface.validate_transformers(package)
        _check_memory(judged, torch.device(device), limit)
        tokenizer = pieces.read_tokenizer(package, huggingface.TOKENIZER, judged.family.vocabulary)
        tensors = read_weights(package, judged)
    prompt = captioner.encode_prompt(tokenizer, judged)
    model = _built(judged.family, tensors, torch.device(device))
    del tensors
    tokens = PieceTokens(
        tokenizer, judged.family.vocabulary, prompt.start, judged.end, judged.family.positions
    )
    preparation = PicturePreparation(judged.preprocessing, sandbox)
    search = _search(judged.generation, judged.family)
    return HuggingFaceCaptioner(split_network(model, prompt), tokens, preparation, search, judged)


def _check_memory(judged: TransformersCaptioner, device: torch.device, limit: int | None) -> None:
    """The weights once as they are read and once as they are packed, and the file's pages."""
    sizes = sum(math.prod(shape) for shape in judged.family.shapes().values())
    needs = 2 * _FLOAT32 * sizes + count_stored_bytes(judged.tensors.values()) + _PROGRAM
    checkpoint_checks.check_captioner_fits(judged.parameters, needs, device, limit)


def _built(family: TransformersFamily, tensors: Mapping[str, Tensor], device: torch.device) -> Any:
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


def _search(found: GenerationSettings, family: TransformersFamily) -> GenerationOptions:
    """Captions end where the model has no more positions."""
    most = min(found.most, family.positions)
    return GenerationOptions(
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


_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}


def read_weights(package: ModelPackage, judged: TransformersCaptioner) -> dict[str, Tensor]:
    """Read the weights in float32. Raises UnusableCheckpoint where values are not finite, or where
    a tensor that is tied to another differs from it.
    """
    twins = tensors.find_tied_tensors(judged.tensors, judged.family)
    wanted = [*judged.family.shapes(), *twins]
    found = dict(_tensors(package, {name: judged.tensors[name] for name in wanted}))
    for name, twin in twins.items():
        if not torch.equal(found.pop(name), found[twin]):
            raise UnusableCheckpoint(
                f"tensor {name}: expected the values of {twin}, to which config.json ties it "
                "(tie_word_embeddings), found others",
                pointer=f"/{name}",
            )
    return found


def count_stored_bytes(found: Iterable[LocatedTensor]) -> int:
    return sum(each.entry.end - each.entry.start for each in found)


def _tensors(
    package: ModelPackage, wanted: Mapping[str, LocatedTensor]
) -> Iterator[tuple[str, Tensor]]:
    """Yield tensors in the order of their files, since compressed files are read from the start."""
    order = sorted(wanted.items(), key=lambda item: (item[1].file, item[1].entry.start))
    for file, group in groupby(order, key=lambda item: item[1].file):
        with package.file(file).open() as stream:
            for name, found in group:
                tensor = _tensor(stream, found)
                checkpoint_checks.check_finite(name, tensor)
                yield name, tensor


def _tensor(stream: IO[bytes] | io.FileIO, found: LocatedTensor) -> Tensor:
    size = found.entry.end - found.entry.start
    raw = bytearray()
    stream.seek(found.data_start + found.entry.start)
    while len(raw) < size:
        part = stream.read(size - len(raw))
        if not part:
            raise UnusableCheckpoint(f"{found.file} ends within its tensors")
        raw += part
    if not size:
        return torch.empty(found.entry.shape)
    return torch.frombuffer(raw, dtype=_DTYPES[found.entry.dtype]).view(found.entry.shape).float()


class _LastHiddenState(nn.Module):
    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, pixel_values: Tensor) -> Tensor:
        return self.encoder(pixel_values=pixel_values).last_hidden_state  # type: ignore[no-any-return]


def split_network(model: Any, prompt: Prompt | None = None) -> EncoderAndDecoder:
    """Encoder and decoder of a model of transformers, whose layers are packed from now on."""
    pack_layers(model, _find_output_layer(model))
    encoder: nn.Module
    decoder: Decoder
    match model.config.model_type:
        case "vision-encoder-decoder":
            into = getattr(model, "enc_to_dec_proj", None)
            is_gpt2 = model.config.decoder.model_type == "gpt2"
            encoder = _LastHiddenState(model.encoder)
            decoder = (Gpt2Decoder if is_gpt2 else BertDecoder)(model.decoder, into)
        case "blip":
            encoder = _LastHiddenState(_build_blip_encoder(model))
            decoder = BertDecoder(model.text_decoder)
        case "git":
            encoder, decoder = _LastHiddenState(model.git.image_encoder), GitDecoder(model)
        case "blip-2":
            encoder = PictureProjection(model)
            decoder = OptDecoder(model.language_model, model.config.num_query_tokens)
        case kind:
            assert prompt is not None, kind
            is_llava = kind == "llava"  # PaliGemma reads its prefix both ways, from position 1 on
            first = 0 if is_llava else 1
            read_after = partial(RotaryDecoder, model, causal=is_llava, first=first)
            return EncoderAndDecoder(PictureProjection(model), read_after(prompt), read_after)
    return EncoderAndDecoder(encoder, decoder)


def _find_output_layer(model: Any) -> nn.Module:
    """The layer of logits, which `Product` packs."""
    part = {"vision-encoder-decoder": "decoder", "blip": "text_decoder", "blip-2": "language_model"}
    name = part.get(model.config.model_type)
    layer: nn.Module = (model if name is None else getattr(model, name)).get_output_embeddings()
    return layer


class _BlipAttention(nn.Module):
    """Self-attention in place of a BlipAttention, by scaled_dot_product_attention."""

    def __init__(self, attention: Any) -> None:
        super().__init__()
        self.qkv, self.projection = attention.qkv, attention.projection
        self._heads: int = attention.num_heads

    def forward(self, hidden_states: Tensor, **_: Any) -> tuple[Tensor, None]:
        n, places, width = hidden_states.shape
        parts = self.qkv(hidden_states).view(n, places, 3, self._heads, -1)
        query, keys, values = parts.permute(2, 0, 3, 1, 4).unbind(0)
        read = functional.scaled_dot_product_attention(query, keys, values)
        return self.projection(read.transpose(1, 2).reshape(n, places, width)), None


def _build_blip_encoder(model: Any) -> nn.Module:
    encoder: nn.Module = model.vision_model
    for layer in model.vision_model.encoder.layers:
        layer.self_attn = _BlipAttention(layer.self_attn)
    return encoder
