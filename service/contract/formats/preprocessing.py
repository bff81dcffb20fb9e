"""Preprocessing of pictures before a model sees them, by transformers' names."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from service.contract.formats.strict_json import JsonPart

MOST_SIDE = 2_048
_LEAST_DEVIATION = 1e-6  # less makes numbers of pixels that float32 does not hold


def _divides(value: float) -> float:
    if abs(value) < _LEAST_DEVIATION:
        raise ValueError(f"expected other numbers than 0, or nearly 0: it divides; found {value:g}")
    return value


Side = Annotated[int, Field(ge=1, le=MOST_SIDE)]
Colour = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]
Means = Annotated[list[Colour], Field(min_length=3, max_length=3)]
Deviations = Annotated[
    list[Annotated[Colour, AfterValidator(_divides)]], Field(min_length=3, max_length=3)
]


class Rectangle(JsonPart):
    height: Side
    width: Side


class ShortestEdge(JsonPart):
    shortest_edge: Side


class PicturePreprocessing(JsonPart):
    """`resample`: a number of Pillow's. Means and deviations are of red, green and blue."""

    do_resize: Literal[True] = True
    size: Rectangle | ShortestEdge
    resample: Annotated[int, Field(ge=0, le=5)]
    do_center_crop: bool | None = False
    crop_size: Rectangle | None = None
    do_rescale: bool = True
    rescale_factor: Annotated[float, Field(gt=0, le=1, allow_inf_nan=False)] = 1 / 255
    do_normalize: bool = True
    image_mean: Means = Field(default=[0.5, 0.5, 0.5])
    image_std: Deviations = Field(default=[0.5, 0.5, 0.5])

    @model_validator(mode="after")
    def _cropped(self) -> "PicturePreprocessing":
        if self.crop is None and isinstance(self.size, ShortestEdge):
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
        """Height and width of what the model looks at."""
        return self.crop or self._sides
