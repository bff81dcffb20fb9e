"""What captioners look at: rows of features, or pictures that are read when they are asked for."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray


class Inputs(Protocol):
    """One row for each image. An array is such inputs too."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: slice | NDArray[np.int64], /) -> NDArray[Any]: ...
