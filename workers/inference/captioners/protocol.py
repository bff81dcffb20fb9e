"""The protocol of a captioner: all that code outside this folder uses.

A captioner owns its tokenisation (`tokens`) and its inputs (`inputs`, `check`), and says by
`settles` and `walks` which of the engine's methods suit it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from workers.inference.inputs import Inputs
from workers.inference.packing import Packed
from workers.inference.vocabulary import Tokens

State = Any  # all that a step needs of the words before it and of the images


class Output(Protocol):
    """From hidden rows to logits; apart from `hidden`, so that only a chunk of logits is in memory.
    A `Product` where it is one matrix product; where a model gives logits at once, they are its
    hidden rows, and this gives them back.
    """

    def __call__(self, hidden: Tensor, /) -> Tensor:
        """(n, o) -> (n, V), which the caller may overwrite."""
        ...


class Captioner(Protocol):
    @property
    def tokens(self) -> Tokens: ...

    @property
    def device(self) -> torch.device: ...

    @property
    def output(self) -> Output: ...

    @property
    def settles(self) -> bool:
        """Whether ranks that are near ties are computed again by `exact`; then `output` is a
        Product. Otherwise they are those of float32.
        """
        ...

    @property
    def walks(self) -> bool:
        """Whether some steps for each image cost much less than teacher forcing of its captions."""
        ...

    @property
    def batch_tokens(self) -> int:
        """The most tokens of one call of `hidden`."""
        ...

    def inputs(self, bundle: Path, images: Sequence[str]) -> Inputs:
        """What `look` takes, of these images in this order, read from a dataset's bundle."""
        ...

    def check(self, inputs: Inputs) -> None:
        """Raise CheckpointMismatch unless `look` takes such inputs."""
        ...

    def look(self, inputs: Tensor) -> Tensor:
        """(N, …) inputs -> (N, …) what later steps need of each image, computed once."""
        ...

    def hidden(self, images: Tensor, captions: Packed) -> Tensor:
        """Teacher forcing: (T, o) the input of `output` for each token, in packed order."""
        ...

    def begin(self, images: Tensor) -> State:
        """The state before START, with a row for each row of `images`."""
        ...

    def step(self, state: State, words: Tensor) -> tuple[Tensor, State]:
        """Read one word in each row: (n, o) hidden, and the state after the word."""
        ...

    def select(self, state: State, rows: Tensor) -> State:
        """The state of these rows; a row may occur twice."""
        ...

    def exact(self) -> "Captioner":
        """The captioner in float64, for `look` and `hidden` only."""
        ...
