"""Reads and checks the header of an encoder of pictures, without reading a tensor.

A safetensors file of Prescore's own: the metadata say which network it is and what becomes of a
picture before it; the tensors are those of this network and no others.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self, get_args

from pydantic import Field, model_validator

from prescore.plain_text import is_plain
from service.contract.errors import AssetRefused, InvalidCheckpoint
from service.contract.formats import safetensors_header, strict_json
from service.contract.formats.architectures import Shapes
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.contract.formats.safetensors_header import TensorEntry
from service.contract.formats.strict_json import JsonPart

FORMAT = "1"
DTYPES = ("F32", "F16")
Padding = Literal["same", "symmetric"]  # as TensorFlow's layers, or as torch's
MAX_NAME = 200
MAX_TEXT = 10_000  # characters of `preprocessing`
MAX_SIDE = 2048  # pixels, of what a network is given
# JSON has no tuples, and a strict model refuses a list where a tuple is expected.
Side = Annotated[tuple[int, int], Field(strict=False)]
Channels = Annotated[tuple[float, float, float], Field(strict=False)]


class EncoderPreprocessing(JsonPart, allow_inf_nan=False):
    """Preprocessing of a picture for a network. Either the whole of it is `stretched` to a width
    and height; or its shorter side gets `shorter` pixels and the middle is `cropped` to a width and
    height. Then of each value (0 to 255) the `mean` of its channel is taken away, and the rest is
    divided by `deviation`.
    """

    resample: Literal["nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"] = "bilinear"
    stretched: Side | None = None
    shorter: int | None = Field(default=None, ge=1, le=MAX_SIDE)
    cropped: Side | None = None
    mean: Channels
    deviation: Channels

    @model_validator(mode="after")
    def _is_one_size(self) -> Self:
        sizes = [size for size in (self.stretched, self.cropped) if size is not None]
        if len(sizes) != 1 or (self.stretched is None) != (self.shorter is not None):
            raise ValueError("expected `stretched`, or `shorter` and `cropped`")
        if not all(1 <= side <= MAX_SIDE for side in sizes[0]):
            raise ValueError(f"expected a width and a height of 1 to {MAX_SIDE}")
        if 0 in self.deviation:
            raise ValueError("expected a deviation other than 0")
        return self

    @property
    def size(self) -> Side:
        """Width and height of what the network is given."""
        size = self.stretched or self.cropped
        assert size is not None
        return size


@dataclass(frozen=True)
class EncoderHeader:
    name: str
    padding: Padding
    preprocessing: EncoderPreprocessing
    tensors: Mapping[str, TensorEntry]

    size = 1280  # of an image's features

    def identity(self, sha256: str) -> FeatureEncoder:
        """Name and digest, as checkpoints and features have them."""
        return FeatureEncoder(name=self.name, digest=f"sha256:{sha256}")


@dataclass(frozen=True)
class MobileNetBlock:
    """Block of MobileNetV2: channels that come in, between, and out; and the stride."""

    given: int
    inner: int
    out: int
    stride: int


def list_mobilenet_blocks() -> Iterator[MobileNetBlock]:
    """The blocks of MobileNetV2, in their order (Sandler et al. 2018, table 2)."""
    given = 32
    for expansion, out, count, stride in _TABLE:
        for place in range(count):
            yield MobileNetBlock(given, given * expansion, out, stride if place == 0 else 1)
            given = out


_TABLE = (
    *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
    *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
)


def list_encoder_shapes() -> Shapes:
    """The tensors of a MobileNetV2 whose layers have their normalisations multiplied in; matrices
    are (out, in, height, width).
    """
    found: Shapes = {"stem.weight": (32, 3, 3, 3), "stem.bias": (32,)}
    for place, block in enumerate(list_mobilenet_blocks()):
        at = f"blocks.{place}"
        if block.inner != block.given:
            found[f"{at}.expand.weight"] = (block.inner, block.given, 1, 1)
            found[f"{at}.expand.bias"] = (block.inner,)
        found[f"{at}.depthwise.weight"] = (block.inner, 1, 3, 3)
        found[f"{at}.depthwise.bias"] = (block.inner,)
        found[f"{at}.project.weight"] = (block.out, block.inner, 1, 1)
        found[f"{at}.project.bias"] = (block.out,)
    size = EncoderHeader.size
    return found | {"head.weight": (size, block.out, 1, 1), "head.bias": (size,)}


def read_encoder_header(path: Path) -> EncoderHeader:
    """Read only the header; AssetRefused says what is wrong."""
    try:
        with path.open("rb") as stream:
            found = safetensors_header.read_safetensors_header(stream, path.stat().st_size)
    except OSError as error:
        raise AssetRefused(f"{path} cannot be read: {error.strerror}") from None
    except InvalidCheckpoint as error:
        raise AssetRefused(f"{path} is no encoder of pictures: {error.detail}") from None
    metadata = found.metadata
    _one_of(metadata, "prescore_encoder", (FORMAT,))
    _one_of(metadata, "architecture", ("mobilenet_v2",))
    padding: Padding = "same" if metadata.get("padding") == "same" else "symmetric"
    _one_of(metadata, "padding", get_args(Padding))
    name = metadata.get("name", "")
    if not 0 < len(name) <= MAX_NAME or not is_plain(name):
        raise _wrong("name", f"a text of 1 to {MAX_NAME} characters", name)
    _check_tensors(found.tensors)
    preprocessing = parse_encoder_preprocessing(metadata.get("preprocessing", ""))
    return EncoderHeader(name, padding, preprocessing, found.tensors)


def dump_encoder_metadata(
    name: str, padding: Padding, preprocessing: EncoderPreprocessing
) -> dict[str, str]:
    """The metadata that `read_encoder_header` reads."""
    return {
        "prescore_encoder": FORMAT,
        "architecture": "mobilenet_v2",
        "name": name,
        "padding": padding,
        "preprocessing": preprocessing.model_dump_json(exclude_none=True),
    }


def parse_encoder_preprocessing(text: str) -> EncoderPreprocessing:
    """Parse the JSON; AssetRefused says what is wrong."""
    if len(text) > MAX_TEXT:
        raise AssetRefused(f"encoder, preprocessing: at most {MAX_TEXT:,} characters are accepted")
    try:
        return strict_json.parse_model(EncoderPreprocessing, text, "encoder, preprocessing", "")
    except InvalidCheckpoint as error:
        raise AssetRefused(error.detail) from None


def _one_of(metadata: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> None:
    if metadata.get(name) not in allowed:
        raise _wrong(name, " or ".join(map(repr, allowed)), metadata.get(name, ""))


def _wrong(name: str, expected: str, found: str) -> AssetRefused:
    return AssetRefused(f"encoder, {name}: expected {expected}, found {found!r:.60}")


def _check_tensors(found: Mapping[str, TensorEntry]) -> None:
    expected = list_encoder_shapes()
    odd = sorted({*found} ^ {*expected})
    if odd:
        raise AssetRefused(
            f"encoder: {len(odd)} tensors are missing or unknown, the first is {odd[0]!r:.100}"
        )
    for name, shape in expected.items():
        tensor = found[name]
        if tensor.shape != shape or tensor.dtype not in DTYPES:
            raise AssetRefused(
                f"encoder, tensor {name}: expected {' or '.join(DTYPES)} of shape {list(shape)}, "
                f"found {tensor.dtype} of {list(tensor.shape)!s:.100}"
            )
