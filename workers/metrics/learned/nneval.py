"""A learned metric as a safetensors file; equal content gives equal bytes.

layers/0/weights (in, out) f64, layers/0/biases (out) f64, layers/1/…
scaling/low, scaling/high (features) f64
frequencies/keys (n) i64, sorted; frequencies/counts (n) u32: n-grams by hash (`frequencies.py`)
metadata: prescore_learned "1"; features: JSON [[name, recipe], …]; tokenizer; images: how many
the frequencies count; about: JSON, for people: recipe, training, results
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import MetricFailed, MetricUnavailable
from service.contract.metrics import catalogue, families
from workers.metrics import model_files
from workers.metrics.family import TOOLS, Floats, ScoringInput
from workers.metrics.frequencies import DocumentFrequencies
from workers.metrics.learned import features, network
from workers.metrics.learned.features import FeatureScaling, FeatureTools, FeatureValues
from workers.metrics.learned.network import HumanClassifier
from workers.metrics.marked_files import Tensors
from workers.metrics.tokens import Tokenizer

FAMILY = "nneval"
MARK = "prescore_learned"
WHAT = "a model of NNEval"
_SHIPPED = Path(__file__).with_name("nneval.safetensors")
_TYPES = {  # of a tensor, or of all tensors in a part
    "layers": "float64",
    "scaling": "float64",
    **model_files.TYPES,
}


@dataclass(frozen=True, eq=False)
class NNEvalModel:
    """A model of NNEval: `recipes` say how features are computed; `digest` is the file's."""

    features: tuple[str, ...]
    recipes: tuple[str, ...]
    tokenizer: Tokenizer
    scaling: FeatureScaling
    classifier: HumanClassifier
    frequencies: DocumentFrequencies
    about: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""

    @property
    def name(self) -> str:
        return catalogue.name_learned_metric(FAMILY, self.digest)

    @property
    def card(self) -> dict[str, Any]:
        """A description for people, as JSON."""
        features = dict(zip(self.features, self.recipes, strict=True))
        return {"features": features, "tokenizer": self.tokenizer, **self.about}

    def says(self, task: ScoringInput) -> Floats:
        """The scores of captions; MetricFailed if features are computed otherwise than trained."""
        _check_needs(self, task)
        found = self._measured(self.features, task, task.tools)
        for expected, recipe in zip(self.recipes, found.recipes, strict=True):
            if recipe != expected:
                raise MetricFailed(
                    f"{self.name} was trained with {expected}, here there is {recipe}: another "
                    "score altogether; train it anew, or bring what it was trained with"
                )
        return self.classifier(self.scaling(found.values))

    def tried(self, task: ScoringInput, table: Mapping[str, Any]) -> Floats:
        """The scores of made-up captions; the features in `table` are not computed."""
        known = {name: np.ravel(table[name]) for name in self.features if name in table}
        computed = [name for name in self.features if name not in known]
        if computed:
            found = self._measured(computed, task, {})
            known |= dict(zip(computed, found.values.T, strict=True))
        return self.classifier(self.scaling(np.stack([known[n] for n in self.features], axis=1)))

    def _measured(
        self, names: Sequence[str], task: ScoringInput, needs: Mapping[str, Any]
    ) -> FeatureValues:
        tools = FeatureTools(task.others, task.jvm, self.frequencies, needs, task.progress)
        return features.measure_features(names, task.captions, task.references, task.rows, tools)


@cache
def load_shipped_nneval() -> NNEvalModel:
    """The model in this package; `CARD.md` beside it says what it was trained on."""
    return read_nneval(_SHIPPED)


def write_nneval(path: Path, model: NNEvalModel) -> None:
    tensors = model.classifier.tensors() | {
        "scaling/low": model.scaling.low,
        "scaling/high": model.scaling.high,
    }
    named = json.dumps(list(zip(model.features, model.recipes, strict=True)))
    model_files.write_model_file(
        path, MARK, tensors, model.frequencies, model.about, features=named
    )


def read_nneval(path: Path) -> NNEvalModel:
    """Read a file that `write` made. Raises MetricFailed if the file is something else."""
    return model_files.read_model_file(path, MARK, WHAT, _restored)


def _restored(metadata: Mapping[str, str], tensors: Tensors, digest: str) -> NNEvalModel:
    named = json.loads(metadata["features"])
    names, recipes = (tuple(str(row[place]) for row in named) for place in (0, 1))
    features.check_features(names)
    for name, values in tensors.items():
        model_files.check_type(name, values, _TYPES.get(name, _TYPES.get(name.split("/")[0])))
    counted, about = model_files.take_frequencies(metadata, tensors)
    classifier = network.restore_network(tensors, len(names))
    low, high = (tensors.pop(name) for name in ("scaling/low", "scaling/high"))
    if tensors:
        raise ValueError(f"found {min(tensors)!r:.60}, which no learned metric has")
    _check_scaling(low, high, len(names))
    return NNEvalModel(
        features=names,
        recipes=recipes,
        tokenizer=counted.tokenizer,
        scaling=FeatureScaling(low, high),
        classifier=classifier,
        frequencies=counted,
        about=about,
        digest=digest,
    )


def _check_scaling(low: NDArray[Any], high: NDArray[Any], count: int) -> None:
    if low.shape != (count,) or high.shape != (count,):
        raise ValueError(
            f"expected a lowest and a highest value of {count} features, found {low.shape} and "
            f"{high.shape}"
        )
    if (low > high).any():
        raise ValueError(f"expected no lowest value above the highest, found {low} and {high}")


def _check_needs(model: NNEvalModel, task: ScoringInput) -> None:
    known = families.list_features()
    for feature in model.features:
        tools = (TOOLS[need] for need in families.list_needs(known[feature]) if need in TOOLS)
        if any(task.tools.get(tool) is None for tool in tools):
            raise MetricUnavailable(f"{model.name} needs what {feature} does, and was given none")
