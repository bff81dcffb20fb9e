"""The weights of the metric `accord_large` as a safetensors file; equal content gives equal bytes.

Words, vectors and frequencies are those of the model of `accord`, which is named by its SHA-256.

weights (features) f64; near (4), enough (3), of what the encoder says, f64; middle () f64
metadata: prescore_accord_large "3"; features: JSON; small: the SHA-256 of the model of `accord`;
encoder: the SHA-256 of the language model's files, and its layer; about: JSON
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from service.contract.formats.digests import compute_digest
from workers import tensor_files
from workers.metrics.accord import model
from workers.metrics.accord.model import AccordWeights
from workers.metrics.family import Floats
from workers.metrics.marked_files import Tensors, read_marked_file

_MARK, _FORMAT = "prescore_accord_large", "3"
_TENSORS = {"weights": 4, "near": 4, "enough": 3}  # how many values each has
SHIPPED = Path(__file__).with_name("minilm.safetensors")


@dataclass(frozen=True, eq=False)
class AccordLargeModel:
    """`weights` of `features`, none negative; at `middle`, right and wrong captions are as likely.
    Of the encoder's features, `near`: the values from which words count in full; `enough`: of its
    first ones, those beyond which they count no more. `encoder`: the name of the language model.
    `digest`: the SHA-256 of the file.
    """

    small: AccordWeights
    encoder: str
    features: Sequence[str]
    weights: Floats
    near: Floats
    enough: Floats
    middle: float
    about: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""

    def __call__(self, features: Floats) -> Floats:
        """Scores in [0, 1] of what is weighted, as those of `accord` follow from its features."""
        return model.score_features(features, self.weights, self.middle)


@cache
def load_shipped_large_model() -> AccordLargeModel:
    """The weights in this package; `CARD.md` beside them says how they were learned."""
    return read_large_model(SHIPPED, model.load_shipped_accord())


def write_large_model(path: Path, large: AccordLargeModel) -> None:
    tensors: Tensors = {
        "weights": large.weights,
        "near": large.near,
        "enough": large.enough,
        "middle": np.array(large.middle),
    }
    metadata = {
        _MARK: _FORMAT,
        "features": json.dumps(list(large.features)),
        "small": large.small.digest,
        "encoder": large.encoder,
        "about": json.dumps(large.about, sort_keys=True, ensure_ascii=False),
    }
    tensor_files.write_tensors(path, tensors, metadata)


def read_large_model(path: Path, small: AccordWeights) -> AccordLargeModel:
    """Read weights beside this model of `accord`; MetricFailed if the file has none."""
    digest = compute_digest(path).removeprefix("sha256:")
    return read_marked_file(
        path,
        _MARK,
        _FORMAT,
        "weights of accord_large",
        lambda metadata, tensors: _restored(metadata, tensors, small, digest),
    )


def _restored(
    metadata: Mapping[str, str], tensors: Tensors, small: AccordWeights, digest: str
) -> AccordLargeModel:
    if metadata["small"] != small.digest:
        raise ValueError(
            f"expected weights beside the model of accord {small.digest:.12}…, found those beside "
            f"{metadata['small']:.12}…; learn them anew"
        )
    for name, count in _TENSORS.items():
        if tensors[name].shape != (count,) or not (tensors[name] >= 0).all():
            raise ValueError(f"expected {count} {name}, none of them negative")
        if name != "weights" and not tensors[name].all():
            raise ValueError(f"expected {count} {name}, all above 0")
    return AccordLargeModel(
        small=small,
        encoder=metadata["encoder"],
        features=json.loads(metadata["features"]),
        weights=tensors["weights"],
        near=tensors["near"],
        enough=tensors["enough"],
        middle=float(tensors["middle"]),
        about=json.loads(metadata["about"]),
        digest=digest,
    )
