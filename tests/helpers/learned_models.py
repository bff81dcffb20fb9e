"""Learned metrics with random weights, whose features need no Java. Scores rise with every feature,
or a model would be refused.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file

from workers import tensor_files
from workers.metrics import frequencies, references
from workers.metrics.accord import model as accord
from workers.metrics.learned.features import FeatureScaling
from workers.metrics.learned.network import HumanClassifier
from workers.metrics.learned.nneval import NNEvalModel

FEATURES = ("bleu_1", "bleu_4", "cider_d")
HIGHEST = np.array([1.0, 1.0, 10.0])  # 0 is the lowest of each
_SIZES = (len(FEATURES), 4, 2)


def by_chance(people: Sequence[Sequence[str]]) -> NNEvalModel:
    """A model with random weights and the document frequencies of these references."""
    rng = np.random.default_rng(0)
    counted = frequencies.collect_frequencies(references.index_tokens(people, "none"))
    first, second = (np.abs(rng.normal(size=_SIZES[n : n + 2])) for n in (0, 1))
    second *= [-0.2, 0.2]  # machine, human
    layers = [(first, first.sum(axis=0)), (second, rng.normal(size=2))]  # no hidden unit is silent
    return NNEvalModel(
        features=FEATURES,
        recipes=(
            "bleu_1|tok:none|reflen:closest|v:1",
            "bleu_4|tok:none|reflen:closest|v:1",
            f"cider_d|tok:none|df:given({counted.digest[:12]}, n={len(people)})|v:2",
        ),
        tokenizer="none",
        scaling=FeatureScaling(np.zeros(3), HIGHEST),
        classifier=HumanClassifier(layers),
        frequencies=counted,
        about={"seed": 0},
    )


def rewrite(path: Path, change: Callable[[dict[str, Any], dict[str, str]], object]) -> None:
    """The same file with tensors or metadata that `change` has changed."""
    tensors = load_file(path)
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    change(tensors, metadata)
    tensor_files.write_tensors(path, tensors, metadata)


def human(model: NNEvalModel, features: Mapping[str, float]) -> float:
    """P(human) of one caption, computed by the definition."""
    row = np.array([features[name] for name in FEATURES])
    (first, second) = model.classifier.layers
    hidden = np.maximum(np.clip(2 * row / HIGHEST - 1, -1, 1) @ first[0] + first[1], 0)
    machine, person = np.exp(hidden @ second[0] + second[1])
    return person / (machine + person)


def of_accord(scale: float = 0.9, tokenizer: str = "none") -> accord.AccordWeights:
    """The shipped model of accord with other weights, for tokens of another tokenizer."""
    shipped = accord.load_shipped_accord()
    counted = replace(shipped.language.frequencies, tokenizer=tokenizer)
    language = replace(shipped.language, frequencies=counted)
    return replace(shipped, language=language, weights=scale * shipped.weights)
