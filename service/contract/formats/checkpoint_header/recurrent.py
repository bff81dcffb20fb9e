"""The config and the tensors of `init`, `pre`, `par` and `merge`: an RNN and one vector of an
image.
"""

from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from service.contract.errors import ConfigInvalid
from service.contract.formats.checkpoint_header.sizes import (
    MAX_FEATURE_SIZE,
    MAX_SIZE,
    Normalize,
    Shapes,
)

RecurrentArchitecture = Literal["init", "pre", "par", "merge"]
RECURRENT: tuple[RecurrentArchitecture, ...] = get_args(RecurrentArchitecture)
WITH_IMAGE_SIZE: tuple[RecurrentArchitecture, ...] = (
    "par",
    "merge",
)  # and with a learned first state


class Config(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    cell: Literal["gru", "lstm", "torch_gru"]
    size: int = Field(ge=1, le=MAX_SIZE)  # of the cell's state
    embedding_size: int | None = Field(default=None, ge=1, le=MAX_SIZE)  # as the state, if None
    image_size: int | None = Field(
        default=None, ge=1, le=MAX_SIZE
    )  # the same, of `par` and `merge`
    feature_size: int = Field(ge=1, le=MAX_FEATURE_SIZE)
    normalize: Normalize = "l2"

    @property
    def inputs(self) -> Literal["features"]:
        return "features"

    @property
    def embedded(self) -> int:
        return self.embedding_size or self.size


def check(architecture: str, config: Config) -> None:
    """Raise ConfigInvalid for a size that the architecture does not have."""
    if config.image_size is not None and architecture not in WITH_IMAGE_SIZE:
        raise ConfigInvalid(
            f"config/image_size: the image vector of {architecture} has the size of what it enters",
            pointer="/__metadata__/config/image_size",
        )


def widths(architecture: str, config: Config) -> tuple[int, int, int]:
    """Sizes of the image vector and of the inputs of the RNN and of the output layer: m, i and o in
    the tensors' shapes.
    """
    s, e = config.size, config.embedded
    m = config.image_size or s
    return {
        "init": (s, e, s),
        "pre": (e, e, s),
        "par": (m, m + e, s),
        "merge": (m, e, m + s),
    }[architecture]


def shapes(architecture: str, config: Config, vocabulary_size: int) -> Shapes:
    s, D, V = config.size, config.feature_size, vocabulary_size
    m, i, o = widths(architecture, config)
    result: Shapes = {
        "image.weight": (D, m),
        "image.bias": (m,),
        "embedding.weight": (V, config.embedded),
        "output.weight": (o, V),
        "output.bias": (V,),
    }
    if architecture in WITH_IMAGE_SIZE:
        result["initial"] = (s,)
    if config.cell == "lstm":
        return result | {"gates.weight": (i + s, 4 * s), "gates.bias": (4 * s,)}
    result |= {"gates.weight": (i + s, 2 * s), "gates.bias": (2 * s,)}
    result |= {"candidate.weight": (i + s, s), "candidate.bias": (s,)}
    if config.cell == "torch_gru":
        result["candidate.state_bias"] = (s,)
    return result
