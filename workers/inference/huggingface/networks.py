"""The library's networks, taken apart for our own loops."""

from typing import Any

from torch import Tensor, nn

from workers.inference.huggingface import blip, opt, rotary
from workers.inference.huggingface.bert import Bert, Git
from workers.inference.huggingface.captioner import Parts
from workers.inference.huggingface.gpt2 import Gpt2
from workers.inference.huggingface.packed import pack_layers
from workers.inference.huggingface.prompts import Prompt
from workers.inference.huggingface.stack import Decoder


class _LastStates(nn.Module):
    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, pixel_values: Tensor) -> Tensor:
        return self.encoder(pixel_values=pixel_values).last_hidden_state  # type: ignore[no-any-return]


def parts_of(model: Any, prompt: Prompt | None = None) -> Parts:
    """Encoder and decoder of a model of transformers, whose layers are packed from now on."""
    kind = model.config.model_type
    if kind == "blip-2":
        return opt.blip2(model)
    if prompt is not None and kind in _PROMPTED:
        return _PROMPTED[kind](model, prompt)
    encoder, decoder = _PARTS[kind](model)
    return Parts(_LastStates(encoder), decoder)


def _vision_encoder_decoder(model: Any) -> tuple[nn.Module, Decoder]:
    pack_layers(model, model.decoder.get_output_embeddings())
    into = getattr(model, "enc_to_dec_proj", None)
    kind = model.config.decoder.model_type
    decoder = Gpt2(model.decoder, into) if kind == "gpt2" else Bert(model.decoder, into)
    return model.encoder, decoder


def _blip(model: Any) -> tuple[nn.Module, Decoder]:
    pack_layers(model, model.text_decoder.get_output_embeddings())
    return blip.vision(model), Bert(model.text_decoder)


def _git(model: Any) -> tuple[nn.Module, Decoder]:
    pack_layers(model, model.get_output_embeddings())
    return model.git.image_encoder, Git(model)


_PARTS = {"vision-encoder-decoder": _vision_encoder_decoder, "blip": _blip, "git": _git}
_PROMPTED = {"llava": rotary.llava, "paligemma": rotary.paligemma}
