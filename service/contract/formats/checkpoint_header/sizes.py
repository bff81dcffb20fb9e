"""What the configs and the tensors of all captioners have in common."""

from typing import Literal

MAX_SIZE = 16_384  # of a state, a word, a layer
MAX_FEATURE_SIZE = 1_048_576
Shapes = dict[str, tuple[int, ...]]
Places = Literal["grid", "regions"]  # what of an image is looked at, if not one vector
Inputs = Literal["features", "grid", "regions"]
Normalize = Literal["l2", "none"]  # what becomes of image features first
