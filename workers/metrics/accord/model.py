"""The metric's model as a safetensors file; equal content gives equal bytes.

words (bytes) u8: stems joined by blanks; images (words) u32: how many images' captions hold each;
vectors (words, dimensions) f16; frequencies/keys (n) i64, sorted, and frequencies/counts (n) u32:
n-grams by hash (`workers/metrics/frequencies.py`); weights (features) f64; middle () f64
metadata: prescore_accord "1"; features: JSON; tokenizer; images: how many were counted; about:
JSON; stems: how words are made stems, left out for English
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from service.contract.metrics import catalogue
from workers.metrics import model_files
from workers.metrics.accord import caption_features
from workers.metrics.accord.caption_features import NAMES
from workers.metrics.accord.language import AccordLanguage
from workers.metrics.accord.stems import ENGLISH, STEMS
from workers.metrics.family import Floats, ScoringInput
from workers.metrics.frequencies import DocumentFrequencies
from workers.metrics.marked_files import Tensors

FAMILY = "accord"
MARK = "prescore_accord"
WHAT = "a model of accord"
SHIPPED = Path(__file__).with_name("coco.safetensors")
_TYPES: Mapping[str, str] = {
    "words": "uint8",
    "images": "uint32",
    "vectors": "float16",
    "weights": "float64",
    "middle": "float64",
    **model_files.TYPES,
}
_TRAINING = ("images", "contrasts", "judged", "inputs")  # of `about`: what it was learned from
_LONGEST = 1.01  # of a vector, whose length is 1 before it is rounded


@dataclass(frozen=True, eq=False)
class AccordWeights:
    """`weights` of NAMES, none negative; at `middle`, right and wrong captions are as likely.
    `digest` is the SHA-256 of the file that the model was read from.
    """

    language: AccordLanguage
    weights: Floats
    middle: float
    about: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""

    @property
    def name(self) -> str:
        return catalogue.name_learned_metric(FAMILY, self.digest)

    @property
    def tokenizer(self) -> str:
        return self.language.frequencies.tokenizer

    @property
    def features(self) -> tuple[str, ...]:
        """The other metrics whose tools it needs: none."""
        return ()

    @property
    def card(self) -> dict[str, Any]:
        """A description for people, as JSON."""
        weights = dict(zip(NAMES, self.weights.tolist(), strict=True))
        language = {"tokenizer": self.tokenizer, "stems": self.language.stems}
        training = {name: self.about[name] for name in _TRAINING if name in self.about}
        others = {name: self.about[name] for name in self.about if name not in _TRAINING}
        return {"weights": weights, **language, "training": training, **others}

    def __call__(self, values: Floats) -> Floats:
        return score_features(values, self.weights, self.middle)

    def says(self, task: ScoringInput) -> Floats:
        """The scores of a task's captions."""
        return self(caption_features.measure_features(task, self.language))

    def tried(self, task: ScoringInput, table: Mapping[str, Any]) -> Floats:  # noqa: ARG002  of all models
        """The scores of made-up captions."""
        return self.says(task)


def score_features(values: Floats, weights: Floats, middle: float) -> Floats:
    """Scores in [0, 1]: 0 if all features are 0, 1 if all are 1; none falls as a feature rises."""
    sums = (values * weights).sum(axis=-1)
    low, high = _squashed(-middle), _squashed(weights.sum() - middle)
    found: Floats = (_squashed(sums - middle) - low) / (high - low)
    return np.clip(found, 0, 1)


def _squashed(values: Any) -> Any:
    return 0.5 * (1 + np.tanh(values / 2))


@cache
def load_shipped_accord() -> AccordWeights:
    """The model in this package; `CARD.md` beside it says what it was learned from."""
    return read_accord(SHIPPED)


def write_accord(path: Path, model: AccordWeights) -> None:
    language = model.language
    tensors: Tensors = {
        "words": np.frombuffer(" ".join(language.words).encode(), np.uint8),
        "images": language.images,
        "vectors": language.vectors,
        "weights": model.weights,
        "middle": np.array(model.middle),
    }
    more = {} if language.stems == ENGLISH else {"stems": language.stems}
    metadata = {"features": json.dumps(NAMES), **more}
    model_files.write_model_file(path, MARK, tensors, language.frequencies, model.about, **metadata)


def read_accord(path: Path) -> AccordWeights:
    """Read a file that `write` made. Raises MetricFailed if the file is something else."""
    return model_files.read_model_file(path, MARK, WHAT, _restored)


def _restored(metadata: Mapping[str, str], tensors: Tensors, digest: str) -> AccordWeights:
    if json.loads(metadata["features"]) != list(NAMES):
        raise ValueError(f"expected the features {NAMES}, found {metadata['features']:.300}")
    for name, values in tensors.items():
        model_files.check_type(name, values, _TYPES.get(name))
    weights, middle = tensors["weights"], tensors["middle"]
    if weights.shape != (len(NAMES),) or (weights < 0).any():
        raise ValueError(f"expected {len(NAMES)} weights, none of them negative")
    if middle.shape != () or not _squashed(weights.sum() - middle) > _squashed(-middle):
        raise ValueError(
            f"expected weights and a middle that tell all features from none, found weights of "
            f"{weights.sum():.4g} together and {middle}"
        )
    counted, about = model_files.take_frequencies(metadata, tensors)
    return AccordWeights(
        _language(metadata, tensors, counted), weights, float(middle), about, digest
    )


def _language(
    metadata: Mapping[str, str], tensors: Tensors, counted: DocumentFrequencies
) -> AccordLanguage:
    stems = metadata.get("stems", ENGLISH)
    if stems not in STEMS:
        raise ValueError(f"expected stems of {', '.join(STEMS)}, found {stems!r:.60}")
    words = tensors["words"].tobytes().decode().split(" ")
    images, vectors = tensors["images"], tensors["vectors"]
    if len(set(words)) < len(words) or images.shape != (len(words),):
        raise ValueError(
            f"expected different words with a count each, found {len(words)}, of them "
            f"{len(set(words))} different, and counts {images.shape}"
        )
    if images.min() < 1 or images.max() > counted.images:
        raise ValueError(
            f"expected words in 1 to {counted.images} images, found {images.min()} to "
            f"{images.max()}"
        )
    if vectors.ndim != 2 or len(vectors) != len(words):
        raise ValueError(f"expected a vector for each of {len(words)} words, found {vectors.shape}")
    if np.linalg.norm(vectors.astype(np.float64), axis=1).max() > _LONGEST:
        raise ValueError("expected vectors that are not longer than 1")
    return AccordLanguage(words, images, vectors, counted, stems)
