"""The metric's model as a safetensors file; equal content gives equal bytes.

words (bytes) u8: stems joined by blanks; images (words) u32: how many images' captions hold each;
vectors (words, dimensions) f16; frequencies/keys (n) i64, sorted, and frequencies/counts (n) u32:
n-grams by hash (`workers/metrics/frequencies.py`); weights (features) f64; middle () f64
metadata: prescore_accord "1"; features: JSON; tokenizer; images: how many were counted; about: JSON
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from service.contract.errors import MetricFailed
from service.contract.formats.digests import digest_of
from workers.files import tensor_files
from workers.metrics.accord.features import NAMES
from workers.metrics.accord.language import Language
from workers.metrics.family import Floats
from workers.metrics.frequencies import Frequencies

Tensors = dict[str, NDArray[Any]]

_FORMAT = "1"
SHIPPED = Path(__file__).with_name("coco.safetensors")


@dataclass(frozen=True, eq=False)
class Model:
    """`weights` of NAMES, none negative; at `middle`, right and wrong captions are as likely.
    `digest` is the SHA-256 of the file that the model was read from.
    """

    language: Language
    weights: Floats
    middle: float
    about: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""

    def __call__(self, features: Floats) -> Floats:
        """Scores in [0, 1]: 0 if all features are 0, 1 if all are 1. No score falls if a feature
        rises.
        """
        sums = (features * self.weights).sum(axis=-1)
        low, high = _squashed(-self.middle), _squashed(self.weights.sum() - self.middle)
        scores: Floats = (_squashed(sums - self.middle) - low) / (high - low)
        return np.clip(scores, 0, 1)


def _squashed(values: Any) -> Any:
    return 0.5 * (1 + np.tanh(values / 2))


@cache
def shipped() -> Model:
    """The model in this package; `CARD.md` beside it says what it was learned from."""
    return read(SHIPPED)


def write(path: Path, model: Model) -> None:
    language = model.language
    tensors: Tensors = {
        "words": np.frombuffer(" ".join(language.words).encode(), np.uint8),
        "images": language.images,
        "vectors": language.vectors,
        "frequencies/keys": language.frequencies.keys,
        "frequencies/counts": language.frequencies.counts.astype(np.uint32),
        "weights": model.weights,
        "middle": np.array(model.middle),
    }
    metadata = {
        "prescore_accord": _FORMAT,
        "features": json.dumps(NAMES),
        "tokenizer": language.frequencies.tokenizer,
        "images": str(language.frequencies.images),
        "about": json.dumps(model.about, sort_keys=True, ensure_ascii=False),
    }
    tensor_files.write(path, tensors, metadata)


def read(path: Path) -> Model:
    """Read a file that `write` made. Raises MetricFailed if the file is something else."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("prescore_accord") != _FORMAT:
                raise MetricFailed(f"expected a model of accord, format {_FORMAT}, in {path.name}")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  a file
        digest = digest_of(path).removeprefix("sha256:")
        return _restored(metadata, tensors, digest)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError) as error:
        raise MetricFailed(f"{path.name} is not a model of accord: {error}") from None


def _restored(metadata: Mapping[str, str], tensors: Tensors, digest: str) -> Model:
    if json.loads(metadata["features"]) != list(NAMES):
        raise ValueError(f"expected the features {NAMES}, found {metadata['features']:.300}")
    if tensors["weights"].shape != (len(NAMES),) or (tensors["weights"] < 0).any():
        raise ValueError(f"expected {len(NAMES)} weights, none of them negative")
    counted = Frequencies(
        metadata["tokenizer"],
        int(metadata["images"]),
        tensors["frequencies/keys"],
        tensors["frequencies/counts"].astype(np.int64),
    )
    words = tensors["words"].tobytes().decode().split(" ")
    return Model(
        language=Language(words, tensors["images"], tensors["vectors"], counted),
        weights=tensors["weights"],
        middle=float(tensors["middle"]),
        about=json.loads(metadata["about"]),
        digest=digest,
    )
