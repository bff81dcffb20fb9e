"""Opens a captioner that transformers has saved: judged first, then the library's network of its
config, with weights that we have read; the library sees no file.
"""

import io
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from service.contract.errors import ConfigInvalid, UnusableCheckpoint
from service.contract.formats import huggingface, packages
from service.contract.formats.huggingface import TransformersCaptioner, tensors
from service.contract.formats.huggingface.tensors import LocatedTensor
from service.contract.formats.packages import ModelPackage
from service.contract.settings import Sandbox
from workers.inference import checkpoint_checks, pieces, tokenizer_child
from workers.inference.huggingface import layer_devices, library
from workers.inference.huggingface.captioner import EncoderAndDecoder, HuggingFaceCaptioner
from workers.inference.huggingface.decoders import BertDecoder, GitDecoder, Gpt2Decoder
from workers.inference.huggingface.image_text_captioner import (
    ImageTextCaptioner,
    connect_captioner,
)
from workers.inference.huggingface.image_text_reader import ImageTextReader
from workers.inference.huggingface.prompted_pictures import ProcessorChild
from workers.inference.huggingface.search_options import make_search
from workers.inference.pieces import OpenTokenizer, PieceTokens
from workers.inference.preprocessing import PicturePreparation

_FLOAT32 = 4
_SAME = 1e-3  # of the largest logit: what float32 may differ by
_PROGRAM = 900_000_000  # torch, transformers and the largest batches
_UNUSED = "pooler."  # weights that no output depends on
_REPORTED = ("missing_keys", "unexpected_keys", "mismatched_keys")


def read_captioner(
    path: Path,
    devices: Sequence[torch.device] = (torch.device("cpu"),),
    limit: int | None = None,
    sandbox: Sandbox = "required",
    *,
    is_confined: bool = False,
) -> HuggingFaceCaptioner | ImageTextCaptioner:
    """The captioner in a package, in float32 on `devices`; pictures are decoded and texts cut in
    the sandbox, in this process where it `is_confined` already.

    Raises InvalidCheckpoint and OutOfMemory before a tensor is read, and UnusableCheckpoint.
    """
    with packages.open_package(path) as package:
        judged = huggingface.validate_transformers(package)
        if judged.preprocessing is not None:
            devices = devices[:1]  # its layers are computed by our own stack
        halves = _check_memory(judged, devices, limit)
        network = build_network(judged, read_weights(package, judged), devices, halves=halves)
        if judged.preprocessing is None:
            open_processor = partial(ProcessorChild, path, sandbox=sandbox, is_confined=is_confined)
            reader = ImageTextReader(network, judged.start)
            return connect_captioner(reader, judged, open_processor)
        vocabulary = int(library.find_output_layer(network).weight.shape[0])
        open_tokenizer: OpenTokenizer = (
            pieces.parse_tokenizer
            if is_confined
            else partial(tokenizer_child.open_tokenizer, sandbox=sandbox)
        )
        tokenizer = pieces.read_tokenizer(
            package, huggingface.TOKENIZER, vocabulary, open_tokenizer
        )
    start, end = _find_edges(judged, network.config, vocabulary)
    positions = library.count_positions(network.config)
    tokens = PieceTokens(tokenizer, vocabulary, start, end, positions)
    _check_size(judged, network.config)
    preparation = PicturePreparation(judged.preprocessing, sandbox)
    search = make_search(judged, end, positions)
    words = torch.tensor([start, end, start], device=devices[0])
    expected = _compute_sample(network, preparation, words)
    model = HuggingFaceCaptioner(split_network(network), tokens, preparation, search, judged)
    _check_sample(model, words, expected)
    return model


@torch.inference_mode()
def _compute_sample(network: Any, preparation: PicturePreparation, words: Tensor) -> Tensor:
    """Logits behind these words (n), of a black picture, by the library's own pass."""
    black = torch.zeros((1, *preparation.shape), device=words.device)
    name = "decoder_input_ids" if network.config.is_encoder_decoder else "input_ids"
    given = {"pixel_values": preparation.normalised(black), name: words[None]}
    found: Tensor = network(**given).logits[0, -len(words) :]
    return found


@torch.inference_mode()
def _check_sample(model: HuggingFaceCaptioner, words: Tensor, expected: Tensor) -> None:
    """Refuse a network that a setting makes another one than ours."""
    black = torch.tensor(model.draw_sample()[:], device=words.device)
    state, rows = model.begin(model.look(black)), []
    for word in words:
        hidden, state = model.step(state, word[None])
        rows.append(model.output(hidden))
    if (torch.cat(rows) - expected).abs().max() > _SAME * expected.abs().max():
        raise UnusableCheckpoint(
            f"a setting in config.json changes how a {model.judged.architecture} is computed, "
            "which is not implemented: write columns where the model runs (prescore.Recorder)"
        )


def _check_memory(
    judged: TransformersCaptioner, devices: Sequence[torch.device], limit: int | None
) -> bool:
    """Raise OutOfMemory. The weights count once as they are read and once as they are packed, and
    the file's pages; on a GPU once. Returns whether they have to stay there in 16 bits.
    """
    weights, stored = _FLOAT32 * judged.parameters, count_stored_bytes(judged.tensors.values())
    if devices[0].type != "cuda":
        needs = 2 * weights + stored + _PROGRAM
        checkpoint_checks.check_captioner_fits(judged.parameters, needs, devices, limit)
        return False
    checkpoint_checks.check_memory_limit("what is read of it", weights + stored + _PROGRAM, limit)
    halves = weights > checkpoint_checks.count_device_bytes(devices) // 2
    needs = (min(stored, weights) if halves else weights) + _PROGRAM
    checkpoint_checks.check_captioner_fits(judged.parameters, needs, devices, limit)
    return halves


def build_network(
    judged: TransformersCaptioner,
    weights: Mapping[str, Tensor],
    devices: Sequence[torch.device],
    *,
    halves: bool = False,
) -> Any:
    """Build the library's network. Raises UnusableCheckpoint: what does not fit, and what to do."""
    library.import_transformers()
    from transformers.models.auto import configuration_auto, modeling_auto

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config = configuration_auto.CONFIG_MAPPING[judged.model_type].from_dict(
                {name: each for name, each in judged.config.items() if "attn_implement" not in name}
            )
            made: Any = modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING[type(config)]
            model, report = made.from_pretrained(
                None,
                config=config,
                state_dict=dict(weights),
                dtype=torch.float32,
                trust_remote_code=False,
                local_files_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # which are reported then
            )
    except Exception as error:  # noqa: BLE001  the library may raise anything
        raise UnusableCheckpoint(f"the library cannot build it: {error!r:.300}") from None
    _check_report(report)
    # The library takes the tensors as they are, and calls some by other names.
    places = {each.data_ptr(): name for name, each in model.named_parameters()}
    kept = ((name, places.get(each.data_ptr())) for name, each in weights.items())
    model.stored_names = {stored: name for stored, name in kept if name is not None}
    model.eval().requires_grad_(requires_grad=False)
    head = library.find_output_layer(model)
    layer_devices.place_network(model, head, devices, halves=halves)
    return model


def _check_report(report: Mapping[str, Iterable[Any]]) -> None:
    """Refuse tensors that are not those of the network."""
    told = []
    for kind in _REPORTED:
        names = [str(name) for name in report[kind] if _UNUSED not in str(name)]
        wrong = sorted(name for name in names if not tensors.is_buffer(name))
        if wrong:
            told.append(f"{len(wrong)} {kind.removesuffix('_keys')}, as {wrong[0]:.150}")
    if told:
        raise UnusableCheckpoint(
            f"config.json and the tensors do not belong together: {'; '.join(told)}"
        )


def _find_edges(judged: TransformersCaptioner, config: Any, vocabulary: int) -> tuple[int, int]:
    """START and END of a captioner that reads no prompt."""
    start, ends = judged.start, judged.ends
    if config.model_type == "blip":  # as the library does
        start, ends = config.text_config.bos_token_id, [config.text_config.sep_token_id]
    for name, token in (("start", start), ("end", ends[0] if ends else None)):
        if token is None or not 0 <= token < vocabulary:
            raise ConfigInvalid(
                f"the token of a caption's {name}, in generation_config.json or config.json: "
                f"expected one of {vocabulary}, found {token}",
                pointer=f"/{huggingface.CONFIG}",
            )
    assert start is not None
    return start, ends[0]


def _check_size(judged: TransformersCaptioner, config: Any) -> None:
    assert judged.preprocessing is not None
    sizes = getattr(config, "vision_config", None) or config.encoder
    height, width = judged.preprocessing.shape
    if (height, width) != (sizes.image_size, sizes.image_size):
        raise ConfigInvalid(
            f"the folder's processor makes pictures of {[height, width]}, the model looks at "
            f"{[sizes.image_size] * 2}",
            pointer="/preprocessor_config.json",
        )


_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
}


def read_weights(package: ModelPackage, judged: TransformersCaptioner) -> dict[str, Tensor]:
    """Read the weights in float32. Raises UnusableCheckpoint where values are not finite."""
    wanted = {name: each for name, each in judged.tensors.items() if not tensors.is_buffer(name)}
    return dict(read_tensors(package, wanted))


def count_stored_bytes(found: Iterable[LocatedTensor]) -> int:
    return sum(each.entry.end - each.entry.start for each in found)


def read_tensors(
    package: ModelPackage, wanted: Mapping[str, LocatedTensor]
) -> Iterator[tuple[str, Tensor]]:
    """Yield finite tensors in float32, in the order of their files, since compressed files are read
    from the start.
    """
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


def split_network(model: Any) -> EncoderAndDecoder:
    """Encoder and decoder of a model of transformers."""
    encoder: nn.Module
    decoder: GitDecoder | BertDecoder | Gpt2Decoder
    match model.config.model_type:
        case "vision-encoder-decoder":
            into = getattr(model, "enc_to_dec_proj", None)
            is_gpt2 = model.config.decoder.model_type == "gpt2"
            encoder = _LastHiddenState(model.encoder)
            decoder = (Gpt2Decoder if is_gpt2 else BertDecoder)(model.decoder, into)
        case "blip":
            encoder = _LastHiddenState(_build_blip_encoder(model))
            decoder = BertDecoder(model.text_decoder)
        case _:
            encoder, decoder = _LastHiddenState(model.git.image_encoder), GitDecoder(model)
    return EncoderAndDecoder(encoder, decoder, model)


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
