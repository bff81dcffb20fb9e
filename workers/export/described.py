"""What a function says of its captioner, for `prescore export`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class Captioner:
    """Modules in evaluation mode, on the CPU, in float32. Each row is an image or a caption.

    look    features (n, feature_size) -> images, state: what each step sees of the image, and the
            state before START; both a tensor or a tuple of tensors, of n rows each, () for none
    step    words (n), images, state -> logits (n, V), the state after these words
    score   words (n, L), images, state -> logits (n, L, V): all words at once; None: by steps

    `words` by the ids that the modules know; START and END may be one. `encoder`: "name" and
    "digest" of the image features, where no dataset says them.
    """

    look: "nn.Module"
    step: "nn.Module"
    score: "nn.Module | None" = None
    feature_size: int
    words: Sequence[str]
    start: str
    end: str
    unknown: str
    tokenizer: str = "karpathy"
    encoder: Mapping[str, str] | None = None
