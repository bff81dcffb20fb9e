"""Image processors: preprocessing of pictures, as preprocessor_config.json has it."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import model_validator

from service.contract.errors import ConfigInvalid
from service.contract.formats.huggingface.schemas import validate_part
from service.contract.formats.preprocessing import PicturePreprocessing

_IMAGENET = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_CLIP = {
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "resample": 3,
}
# The library's own, of what a file leaves out.
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "ViT": {"size": {"height": 224, "width": 224}, "resample": 2},
    "DeiT": {
        "size": {"height": 256, "width": 256},
        "crop_size": {"height": 224, "width": 224},
        "do_center_crop": True,
        "resample": 3,
        **_IMAGENET,
    },
    "Beit": {"size": {"height": 224, "width": 224}, "resample": 3},
    "Siglip": {"size": {"height": 224, "width": 224}, "resample": 3},
    "Blip": {"size": {"height": 384, "width": 384}, **_CLIP},
    "CLIP": {
        "size": {"shortest_edge": 224},
        "crop_size": {"height": 224, "width": 224},
        "do_center_crop": True,
        **_CLIP,
    },
}
_ENDINGS = ("ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor")


class ImageProcessor(PicturePreprocessing):
    """`kind`: ViTImageProcessorFast is a ViT."""

    harmless: ClassVar[frozenset[str]] = frozenset(
        [
            *("processor_class", "image_processor_type", "feature_extractor_type", "device"),
            *("do_convert_rgb", "data_format", "input_data_format", "return_tensors"),
            *("default_to_square", "disable_grouping", "image_seq_length", "use_square_size"),
            *("_valid_processor_keys", "do_reduce_labels", "reduce_labels"),
        ]
    )

    kind: Literal["ViT", "DeiT", "Beit", "Siglip", "Blip", "CLIP"]
    do_pad: Literal[False] | None = None
    pad_size: None = None

    @model_validator(mode="before")
    @classmethod
    def _filled(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        kind = value.get("kind")
        given = {name: each for name, each in value.items() if each is not None}
        filled = {**_DEFAULTS.get(str(kind), {}), **given}
        for name in ("size", "crop_size"):  # as older versions wrote them
            if isinstance(filled.get(name), int):
                side = filled[name]
                square = {"height": side, "width": side}
                is_short = name == "size" and kind == "CLIP"
                filled[name] = {"shortest_edge": side} if is_short else square
        return filled


def parse_image_processor(found: Mapping[str, Any], where: str) -> ImageProcessor:
    """Parse an image processor. Raises ConfigInvalid with the place in `where`, a file."""
    name = str(found.get("image_processor_type") or found.get("feature_extractor_type") or "")
    ending = next((each for each in _ENDINGS if name.endswith(each)), "")
    kind = name.removesuffix(ending)
    if kind not in _DEFAULTS:
        raise ConfigInvalid(
            f"{where}/image_processor_type: expected one of {', '.join(_DEFAULTS)} (as "
            f"ViTImageProcessor), found {name!r:.60}",
            pointer=f"/{where}/image_processor_type",
        )
    return validate_part(ImageProcessor, {**found, "kind": kind}, where)
