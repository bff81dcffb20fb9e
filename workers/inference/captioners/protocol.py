"""The protocol of a captioner: all that code outside this folder uses.

A captioner owns its tokenisation (`tokens`) and its inputs (`inputs`, `check`), and says by
`settles` and `walks` which of the engine's methods suit it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

import torch
from torch import Tensor

from service.contract.formats.checkpoint_header import FeatureEncoder
from workers.inference.features import Inputs
from workers.inference.packing import Packed
from workers.inference.vocabulary import CaptionerTokens

LookedImages = Any  # a tensor with a row for each image, or what stands for one
CaptionerState = Any  # all that a step needs of the words before it and of the images


@dataclass(frozen=True)
class GenerationOptions:
    """Options of a captioner's own search for captions (generation.py). Lengths are in
    tokens, END counted and START not.
    """

    beams: int = 1
    most: int = 20
    least: int = 0  # END is not written as the token of a lower number
    length_penalty: float = 1.0  # scores are divided by the length to this power
    early_stopping: bool | Literal["never"] = False
    forced_first: int | None = None
    forced_last: int | None = None
    never: tuple[int, ...] = ()
    never_first: tuple[int, ...] = ()
    repetition_penalty: float = (
        1.0  # of what is there: scores > 0 are divided by it, others times it
    )
    no_repeat_ngram: int = 0  # so many tokens in a row do not occur twice; 0: they may
    longest: int = 1000  # what `most` may be: as many places as the model has
    other_ends: tuple[int, ...] = ()  # ids that end a caption besides END
    before: tuple[int, ...] = ()  # a prompt, which counts as written where repetition does

    def __post_init__(self) -> None:
        if self.beams < 1 or not 0 <= self.least <= self.most or self.most < 1:
            raise ValueError(f"expected beams >= 1 and 0 <= least <= most, found {self}")
        if self.repetition_penalty <= 0 or self.no_repeat_ngram < 0:
            raise ValueError(f"expected a penalty > 0 and n-grams of no length < 0, found {self}")


class OutputLayer(Protocol):
    """Output layer, from hidden rows to logits; apart from `hidden`, so that only a chunk of logits
    is in memory. A `Product` where it is one matrix product; where a model gives logits at once,
    they are its hidden rows, and this gives them back.
    """

    def __call__(self, hidden: Tensor, /) -> Tensor:
        """(n, o) -> (n, V), which the caller may overwrite."""
        ...


class Captioner(Protocol):
    @property
    def tokens(self) -> CaptionerTokens: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def output(self) -> OutputLayer: ...

    @property
    def settles(self) -> bool:
        """True if ranks that are near ties are computed again by `exact`; then `output` is a
        Product. Otherwise they are those of float32.
        """
        ...

    @property
    def walks(self) -> bool:
        """True if some steps for each image cost much less than teacher forcing of its captions."""
        ...

    @property
    def batch_tokens(self) -> int:
        """The most tokens of one call of `hidden`."""
        ...

    @property
    def search(self) -> GenerationOptions | None:
        """Options of its own search, unless a request changes them; None where decoding.py
        searches.
        """
        ...

    @property
    def together(self) -> int:
        """The most images whose states are in memory at once in a search."""
        ...

    @property
    def encoder(self) -> FeatureEncoder | None:
        """Encoder of the image features that it looks at; None where it looks at pictures."""
        ...

    def inputs(self, bundle: Path, images: Sequence[str]) -> Inputs:
        """Read what `look` takes, of these images in this order, from a dataset's bundle."""
        ...

    def check(self, inputs: Inputs) -> None:
        """Raise CheckpointMismatch unless `look` takes such inputs."""
        ...

    def look(self, inputs: Any) -> LookedImages:
        """(N, …) inputs -> (N, …) what later steps need of each image, computed once."""
        ...

    def hidden(self, images: LookedImages, captions: Packed) -> Tensor:
        """Teacher forcing: (T, o) the input of `output` for each token, in packed order."""
        ...

    def begin(self, images: LookedImages) -> CaptionerState:
        """The state before START, with a row for each row of `images`."""
        ...

    def step(self, state: CaptionerState, words: Tensor) -> tuple[Tensor, CaptionerState]:
        """Read one word in each row: (n, o) hidden, and the state after the word."""
        ...

    def select(self, state: CaptionerState, rows: Tensor) -> CaptionerState:
        """The state of these rows; a row may occur twice."""
        ...

    def exact(self) -> "Captioner":
        """The captioner in float64, for `look` and `hidden` only."""
        ...
