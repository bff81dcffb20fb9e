"""The families of captioners, by `model_type`."""

from collections.abc import Mapping

from service.contract.formats.huggingface.blip import Blip
from service.contract.formats.huggingface.blip2 import Blip2
from service.contract.formats.huggingface.git import Git
from service.contract.formats.huggingface.paligemma import PaliGemma
from service.contract.formats.huggingface.parts import Family
from service.contract.formats.huggingface.vision_encoder_decoder import VisionEncoderDecoder

FAMILIES: Mapping[str, type[Family]] = {
    "vision-encoder-decoder": VisionEncoderDecoder,
    "blip": Blip,
    "blip-2": Blip2,
    "git": Git,
    "paligemma": PaliGemma,
}
