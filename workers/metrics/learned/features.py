"""The features that the learned metric has of a caption: other metrics' scores in [-1, 1]."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from service.contract.errors import MetricFailed, UnknownMetric
from service.contract.metrics import families
from workers.metrics import references
from workers.metrics.family import Floats, ScoreFamily, ScoringInput
from workers.metrics.frequencies import DocumentFrequencies
from workers.metrics.java.jvm import Jvm
from workers.metrics.ngrams import Ints
from workers.metrics.references import PreparedReferences
from workers.metrics.tokens import Tokenizer, tokenize
from workers.metrics.vectors.sentences import list_distinct
from workers.progress import Progress, ignore_progress


@dataclass(frozen=True)
class FeatureValues:
    """`values` (captions, features); `recipes`: how each was computed, without references."""

    values: Floats
    recipes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class FeatureTools:
    """Tools for features: `score` scores by any family; `needs` are other inputs by name."""

    score: ScoreFamily
    jvm: Jvm
    frequencies: DocumentFrequencies
    needs: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress = ignore_progress


@dataclass(frozen=True, eq=False)
class FeatureScaling:
    """The lowest and highest values of features in training; values outside are clipped."""

    low: Floats
    high: Floats

    @classmethod
    def of(cls, values: Floats) -> "FeatureScaling":
        return cls(values.min(axis=0), values.max(axis=0))

    def __call__(self, values: Floats) -> Floats:
        """Features scaled to [-1, 1]. A feature that never varied says nothing and is 0."""
        width = self.high - self.low
        shares = np.divide(values - self.low, width, out=np.full_like(values, 0.5), where=width > 0)
        scaled: Floats = np.clip(2 * shares - 1, -1, 1)
        return scaled


def check_features(names: Sequence[str]) -> None:
    known = families.list_features()
    unknown = [name for name in names if name not in known]
    if unknown or not names or len(set(names)) < len(names):
        raise UnknownMetric(
            f"expected different features of {', '.join(known)}, found "
            f"{', '.join(map(repr, unknown or names)) or 'none'}"
        )


def measure_features(
    names: Sequence[str],
    tokens: Sequence[str],
    prepared: PreparedReferences,
    rows: Ints,
    tools: FeatureTools,
) -> FeatureValues:
    """Features of tokenised captions; rows[i] is the image that caption i answers."""
    check_features(names)
    task = ScoringInput(
        tokens,
        rows,
        prepared,
        tools.jvm,
        tools.frequencies,
        tools.progress,
        tokenizer=prepared.tokenizer,
        tools=tools.needs,
    )
    columns: dict[str, Floats] = {}
    signatures: dict[str, str] = {}
    family_of = families.list_features()
    for family in dict.fromkeys(family_of[name] for name in names):
        found = tools.score(family, task)
        columns |= found.captions
        signatures |= found.signatures
    recipes = tuple(re.sub(r"\|refs:[^|]*", "", signatures[name]) for name in names)
    return FeatureValues(np.stack([columns[name] for name in names], axis=1), recipes)


def measure_texts(
    names: Sequence[str],
    captions: Sequence[str],
    reference_sets: Sequence[tuple[str, ...]],
    tokenizer: Tokenizer,
    tools: FeatureTools,
) -> FeatureValues:
    """Features of captions, each with its own reference set; equal sets are analysed once."""
    if not captions or len(captions) != len(reference_sets):
        raise MetricFailed(
            f"expected captions with a reference set for each, found {len(captions)} and "
            f"{len(reference_sets)}"
        )

    def none_yet(_done: int, _total: int) -> None:
        tools.progress(0, len(captions))

    sets, rows = list_distinct(reference_sets)
    prepared = references.prepare_references(sets, tokenizer, tools.jvm, progress=none_yet)
    tokens = tokenize(captions, tokenizer, tools.jvm, progress=none_yet)
    return measure_features(names, tokens, prepared, rows, tools)
