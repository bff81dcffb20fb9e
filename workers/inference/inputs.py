"""Inputs of captioners on their way to `look`: arrays, or pictures that are read when asked for."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

NetworkInputs = Mapping[str, Tensor]  # by the names of the network's own parameters


class AlikeInputs(Protocol):
    """Inputs that no array holds, since those of each image have shapes of their own."""

    def group_alike(self, most: int) -> Iterator[tuple[Sequence[int], Any]]:
        """Yield rows whose inputs have one shape, at most so many together, and these inputs."""
        ...


def load_inputs(rows: Any, device: torch.device) -> Any:
    """Load rows of inputs as `look` takes them: a tensor, or AlikeInputs as they are."""
    return torch.tensor(rows, device=device) if isinstance(rows, np.ndarray) else rows


def group_inputs(rows: Any, most: int, device: torch.device) -> Iterator[tuple[Sequence[int], Any]]:
    """Yield blocks of rows that a search takes together, and their numbers."""
    if isinstance(rows, np.ndarray):
        yield range(len(rows)), load_inputs(rows, device)
    else:
        yield from rows.group_alike(most)
