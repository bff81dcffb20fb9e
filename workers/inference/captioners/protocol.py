"""What the engine asks of a captioner; nothing else of it is known outside this folder."""

from typing import Any, Protocol

from torch import Tensor

from service.contract.formats.checkpoint_header import Description
from workers.inference.packing import Packed
from workers.inference.products import Product

State = Any  # whatever the captioner keeps between two words, one row for each hypothesis


class Captioner(Protocol):
    description: Description
    output: Product  # hidden (n, o) -> logits (n, V); apart, so that scoring can go in chunks

    def look(self, features: Tensor) -> Tensor:
        """(N, D) raw features -> (N, ·) the image side, computed once for each image."""
        ...

    def hidden(self, images: Tensor, captions: Packed) -> Tensor:
        """Teacher forcing: (T, o) what `output` needs to predict each token, in packed order."""
        ...

    def begin(self, images: Tensor) -> State:
        """The state before START; one row for each row of `images`."""
        ...

    def step(self, state: State, words: Tensor, images: Tensor) -> tuple[Tensor, State]:
        """Reads one word in each row: (n, o) hidden, and the state after it."""
        ...

    def select(self, state: State, rows: Tensor) -> State:
        """The state of these rows; a row may be taken twice."""
        ...

    def exact(self) -> "Captioner":
        """The same captioner in float64, for `look` and `hidden` alone."""
        ...
