"""The families of captioners, by `model_type`."""

from collections.abc import Mapping

from service.contract.formats.huggingface.families.blip import Blip
from service.contract.formats.huggingface.families.blip2 import Blip2
from service.contract.formats.huggingface.families.git import Git
from service.contract.formats.huggingface.families.llava import Llava
from service.contract.formats.huggingface.families.paligemma import PaliGemma
from service.contract.formats.huggingface.families.vision_encoder_decoder import (
    VisionEncoderDecoder,
)
from service.contract.formats.huggingface.parts import Family

FAMILIES: Mapping[str, type[Family]] = {
    "vision-encoder-decoder": VisionEncoderDecoder,
    "blip": Blip,
    "blip-2": Blip2,
    "git": Git,
    "llava": Llava,
    "paligemma": PaliGemma,
}
