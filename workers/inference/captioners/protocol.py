"""The protocol of a captioner: all that code outside this folder uses."""

from typing import Any, Protocol

from torch import Tensor

from service.contract.formats.checkpoint_header import Description
from workers.inference.matrix_products import Product
from workers.inference.packing import Packed

State = Any  # the captioner's state between two words, a row for each hypothesis


class Captioner(Protocol):
    description: Description
    output: Product  # hidden (n, o) -> logits (n, V); separate, so that scoring can use chunks

    def look(self, features: Tensor) -> Tensor:
        """(N, D) raw features -> (N, ·) what later steps need of each image, computed once."""
        ...

    def hidden(self, images: Tensor, captions: Packed) -> Tensor:
        """Teacher forcing: (T, o) the input of `output` for each token, in packed order."""
        ...

    def begin(self, images: Tensor) -> State:
        """The state before START, with a row for each row of `images`."""
        ...

    def step(self, state: State, words: Tensor, images: Tensor) -> tuple[Tensor, State]:
        """Read one word in each row: (n, o) hidden, and the state after the word."""
        ...

    def select(self, state: State, rows: Tensor) -> State:
        """The state of these rows; a row may occur twice."""
        ...

    def exact(self) -> "Captioner":
        """The captioner in float64, for `look` and `hidden` only."""
        ...
