"""A learned metric as a safetensors file; equal content gives equal bytes.

layers/0/weights (in, out) f64, layers/0/biases (out) f64, layers/1/…; or instead
trees/features (trees, 2^depth - 1) i64, trees/thresholds f64, trees/leaves (trees, 2^depth) f64
scaling/low, scaling/high (features) f64
frequencies/keys (n) i64, sorted; frequencies/counts (n) u32: n-grams by hash (`frequencies.py`)
metadata: prescore_learned "1"; features: JSON [[name, recipe], …]; tokenizer; images: how many
the frequencies count; about: JSON, for people: recipe, training, results
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from service.contract.errors import MetricFailed, UnknownMetric
from service.contract.formats.digests import digest_of
from service.contract.metrics import catalogue
from workers.files import tensor_files
from workers.metrics.frequencies import Frequencies
from workers.metrics.learned import features, learners
from workers.metrics.learned.epochs import Classifier, Tensors
from workers.metrics.learned.features import Scaling
from workers.metrics.tokens import SIGNATURES, Tokenizer

_FORMAT = "1"
_SHIPPED = Path(__file__).with_name("nneval.safetensors")
_TYPES = {  # of a tensor, or of all tensors in a part
    "layers": "float64",
    "scaling": "float64",
    "trees": "float64",
    "trees/features": "int64",
    "frequencies/keys": "int64",
    "frequencies/counts": "uint32",
}


@dataclass(frozen=True, eq=False)
class Model:
    """A learned metric. `recipes` say how each feature is computed; `digest` is the SHA-256 of the
    file that the model was read from.
    """

    features: tuple[str, ...]
    recipes: tuple[str, ...]
    tokenizer: Tokenizer
    scaling: Scaling
    classifier: Classifier
    frequencies: Frequencies
    about: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""

    @property
    def name(self) -> str:
        return catalogue.learned(self.digest)

    @property
    def card(self) -> dict[str, Any]:
        """A description for people, as JSON."""
        features = dict(zip(self.features, self.recipes, strict=True))
        return {"features": features, "tokenizer": self.tokenizer, **self.about}


def shipped() -> Model:
    """The model in this package; `CARD.md` beside it says what it was trained on."""
    return read(_SHIPPED)


def write(path: Path, model: Model) -> None:
    tensors = model.classifier.tensors() | {
        "scaling/low": model.scaling.low,
        "scaling/high": model.scaling.high,
        "frequencies/keys": model.frequencies.keys,
        "frequencies/counts": model.frequencies.counts.astype(np.uint32),
    }
    metadata = {
        "prescore_learned": _FORMAT,
        "features": json.dumps(list(zip(model.features, model.recipes, strict=True))),
        "tokenizer": model.tokenizer,
        "images": str(model.frequencies.images),
        "about": json.dumps(model.about, sort_keys=True, ensure_ascii=False),
    }
    tensor_files.write(path, tensors, metadata)


def read(path: Path) -> Model:
    """Read a file that `write` made. Raises MetricFailed if the file is something else."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            found = metadata.get("prescore_learned")
            if found != _FORMAT:
                raise MetricFailed(
                    f"expected a learned metric of format {_FORMAT} in {path.name}, "
                    f"found {'none' if found is None else repr(found)[:60]}"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  a file
        digest = digest_of(path).removeprefix("sha256:")
        return _restored(metadata, tensors, digest)
    except (SafetensorError, OSError, ValueError, KeyError, TypeError, UnknownMetric) as error:
        raise MetricFailed(f"{path.name} is not a file of a learned metric: {error}") from None


def _restored(metadata: Mapping[str, Any], tensors: Tensors, digest: str) -> Model:
    named = json.loads(metadata["features"])
    names, recipes = (tuple(str(row[place]) for row in named) for place in (0, 1))
    features.check(names)
    tokenizer, images = metadata["tokenizer"], int(metadata["images"])
    if tokenizer not in SIGNATURES:
        raise ValueError(
            f"expected a tokenizer of {', '.join(SIGNATURES)}, found {tokenizer!r:.60}"
        )
    for name, values in tensors.items():
        _check_type(name, values, _TYPES.get(name, _TYPES.get(name.split("/")[0])))
    classifier = learners.restored(tensors, len(names))
    low, high, keys, counts = (
        tensors.pop(name)
        for name in ("scaling/low", "scaling/high", "frequencies/keys", "frequencies/counts")
    )
    if tensors:
        raise ValueError(f"found {min(tensors)!r:.60}, which no learned metric has")
    _check_scaling(low, high, len(names))
    _check_frequencies(keys, counts, images)
    return Model(
        features=names,
        recipes=recipes,
        tokenizer=tokenizer,
        scaling=Scaling(low, high),
        classifier=classifier,
        frequencies=Frequencies(tokenizer, images, keys, counts.astype(np.int64)),
        about=json.loads(metadata["about"]),
        digest=digest,
    )


def _check_type(name: str, values: NDArray[Any], expected: str | None) -> None:
    if expected is None:
        raise ValueError(f"found {name!r:.60}, which no learned metric has")
    if values.dtype.name != expected:
        raise ValueError(f"expected {name} of {expected}, found {values.dtype.name}")
    if not np.isfinite(values).all():
        raise ValueError(f"expected finite numbers in {name}")


def _check_scaling(low: NDArray[Any], high: NDArray[Any], count: int) -> None:
    if low.shape != (count,) or high.shape != (count,):
        raise ValueError(
            f"expected a lowest and a highest value of {count} features, found {low.shape} and "
            f"{high.shape}"
        )
    if (low > high).any():
        raise ValueError(f"expected no lowest value above the highest, found {low} and {high}")


def _check_frequencies(keys: NDArray[Any], counts: NDArray[Any], images: int) -> None:
    if keys.ndim != 1 or keys.shape != counts.shape or (keys[1:] <= keys[:-1]).any():
        raise ValueError(
            f"expected a count for each of the sorted keys, found {keys.shape} and {counts.shape}"
        )
    if counts.max(initial=0) > images or counts.min(initial=2) < 2:
        raise ValueError(
            f"expected counts from 2 to {images} images, found {counts.min()} to {counts.max()}"
        )
