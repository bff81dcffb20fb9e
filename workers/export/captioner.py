"""Captioner that a function gives to `prescore export`: its modules and their description."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class ExportedCaptioner:
    """Modules in evaluation mode, on the CPU, in float32. Each row is an image or a caption.

    look    features (n, feature_size), or pixels (n, 3, height, width) -> images, state: what each
            step sees of the image, and the state before START; both a tensor or a tuple of tensors,
            of n rows each, () for none
    step    words (n), images, state -> logits (n, V), the state after these words
    score   words (n, L), images, state -> logits (n, L, V): all words at once; None: by steps

    Of features: `feature_size`, and `encoder`, the "name" and "digest" of what made them, where no
    dataset says these. Of pictures: `preprocessing`, what becomes of them first, by the names of
    preprocessor_config.json; "channels" may be "bgr".

    `words` by the ids that the modules know, with `tokenizer` the name of how captions become
    words. Or a `tokenizer` of pieces of words, of the library tokenizers or a fast one of
    transformers; then `longest` is how many tokens are read of one caption, START among them. START
    and END may be one.
    """

    look: "nn.Module"
    step: "nn.Module"
    score: "nn.Module | None" = None
    feature_size: int | None = None
    encoder: Mapping[str, str] | None = None
    preprocessing: Mapping[str, Any] | None = None
    words: Sequence[str] | None = None
    start: str
    end: str
    unknown: str | None = None
    tokenizer: Any = "karpathy"
    longest: int | None = None
