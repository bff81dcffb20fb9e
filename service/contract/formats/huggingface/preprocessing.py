"""What becomes of pictures, as preprocessor_config.json has it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from service.contract.formats.huggingface.reading import Part

Side = Annotated[int, Field(ge=1, le=2_048)]
Three = Annotated[
    list[Annotated[float, Field(allow_inf_nan=False)]], Field(min_length=3, max_length=3)
]
_HALF = [0.5, 0.5, 0.5]
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
    "Blip": {"size": {"height": 384, "width": 384}, **_CLIP},
    "CLIP": {
        "size": {"shortest_edge": 224},
        "crop_size": {"height": 224, "width": 224},
        "do_center_crop": True,
        **_CLIP,
    },
}
_ENDINGS = ("ImageProcessorFast", "ImageProcessorPil", "ImageProcessor", "FeatureExtractor")


class Rectangle(Part):
    height: Side
    width: Side


class Shortest(Part):
    shortest_edge: Side


class Preprocessing(Part):
    harmless = frozenset(
        [
            "processor_class",
            "image_processor_type",
            "feature_extractor_type",
            "do_convert_rgb",
            "data_format",
            "input_data_format",
            "device",
            "return_tensors",
            "default_to_square",
            "disable_grouping",
            "image_seq_length",
            "_valid_processor_keys",
            "use_square_size",
        ]
    )

    kind: Literal["ViT", "DeiT", "Blip", "CLIP"]
    do_resize: Literal[True] = True
    size: Rectangle | Shortest
    resample: Annotated[int, Field(ge=0, le=5)]
    do_center_crop: bool | None = False
    crop_size: Rectangle | None = None
    do_rescale: bool = True
    rescale_factor: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 1 / 255
    do_normalize: bool = True
    image_mean: Three = _HALF
    image_std: Three = _HALF
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

    @model_validator(mode="after")
    def _cropped(self) -> "Preprocessing":
        if 0.0 in self.image_std:
            raise ValueError("image_std: expected other numbers than 0")
        if self.crop is None and isinstance(self.size, Shortest):
            raise ValueError(
                "expected all pictures to become one size: a size with height and width, or a crop"
            )
        if self.crop is not None:
            least = self._sides
            if self.crop[0] > least[0] or self.crop[1] > least[1]:
                raise ValueError(f"expected a crop_size within the size, found {list(self.crop)}")
        return self

    @property
    def _sides(self) -> tuple[int, int]:
        """Height and width at least."""
        if isinstance(self.size, Rectangle):
            return self.size.height, self.size.width
        return self.size.shortest_edge, self.size.shortest_edge

    @property
    def crop(self) -> tuple[int, int] | None:
        if not self.do_center_crop or self.crop_size is None:
            return None
        return self.crop_size.height, self.crop_size.width

    @property
    def shape(self) -> tuple[int, int]:
        return self.crop or self._sides


def named(found: Mapping[str, Any]) -> dict[str, Any]:
    """With the `kind` of image processor: ViTImageProcessorFast is a ViT."""
    name = str(found.get("image_processor_type") or found.get("feature_extractor_type") or "")
    ending = next((each for each in _ENDINGS if name.endswith(each)), "")
    return {**found, "kind": name.removesuffix(ending)}
