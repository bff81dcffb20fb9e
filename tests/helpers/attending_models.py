"""Small captioners that look at places of an image, with random tensors, and images for them."""

import numpy as np
import torch

from helpers.builders import ENCODER
from service.contract.formats.architectures import (
    AttentionConfig,
    TransformerConfig,
    list_tensor_shapes,
)
from service.contract.formats.checkpoint_header import CheckpointDescription
from workers.inference.captioners import ARCHITECTURES, CanonicalCaptioner

NAMES = ("soft_attention", "adaptive_attention", "bottom_up_top_down", "transformer")
OPTIONS = {  # of what is computed, each other than the usual
    "soft_attention": {"scores": "relu", "start": "linear", "gate": "each", "output": "state"},
    "adaptive_attention": {"scores": "relu"},
    "bottom_up_top_down": {"scores": "relu", "places_size": 4},
    "transformer": {"norms": "before", "activation": "gelu", "last_norm": True},
}
FEATURES, WORDS, HEADS = 5, 30, 2
REGIONS = [3, 0, 1, 4, 2, 4, 1]  # of images


def description(
    architecture: str, size: int = 8, features: int = FEATURES, words: int = WORDS, **config: object
) -> CheckpointDescription:
    given = {"inputs": "regions", "size": size, "feature_size": features, **config}
    if architecture == "transformer":
        found = TransformerConfig(**{"layers": 2, "heads": HEADS, "inner_size": 12, **given})
    else:
        found = AttentionConfig(**{"embedding_size": 6, "attention_size": 7, **given})
    vocabulary = ("<edge>", "<unk>", *(f"w{index}" for index in range(2, words)))
    return CheckpointDescription(architecture, found, vocabulary, "blanks", ENCODER)


def arrays(of: CheckpointDescription, seed: int = 0, scale: float = 0.5) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    named = list_tensor_shapes(of.architecture, of.config, len(of.vocabulary))
    return {
        name: (scale * rng.normal(size=shape)).astype(np.float32) for name, shape in named.items()
    }


def model(of: CheckpointDescription, tensors: dict[str, np.ndarray]) -> CanonicalCaptioner:
    weights = {name: torch.from_numpy(array) for name, array in tensors.items()}
    return ARCHITECTURES[of.architecture](of, weights)


def regions(counts: list[int], seed: int = 1, places: int | None = None) -> np.ndarray:
    """(N, P, D): those that are not there are NaN."""
    rng = np.random.default_rng(seed)
    most = max(counts) if places is None else places
    rows = np.full((len(counts), most, FEATURES), np.nan, np.float32)
    for row, count in zip(rows, counts, strict=True):
        row[:count] = rng.normal(size=(count, FEATURES))
    return rows


def there(row: np.ndarray) -> np.ndarray:
    return row[~np.isnan(row).any(axis=1)]
