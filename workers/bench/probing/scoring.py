"""Scores of a probe's captions by any post-gen metrics, and the rows of its table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from service.contract.errors import UnknownMetric
from service.contract.metrics import catalogue
from service.contract.metrics.families import FAMILIES, find_family_name
from workers.metrics import postgen
from workers.metrics.java.jvm import Jvm
from workers.metrics.references import PreparedReferences

Values = Mapping[str, float]  # by metric


@dataclass(frozen=True)
class ProbeScores:
    values: Values
    signatures: Mapping[str, str]


@dataclass(frozen=True)
class ProbeTableRow:
    """`share` is the share of tokens replaced; `drop` is the first row's scores minus these; `sd`
    is the population standard deviation if scores are means. If there is a `reason`, there are no
    scores. `text` is the sentence, if the row is about one.
    """

    probe: str
    name: str
    share: float | None = None
    scores: Values = field(default_factory=dict)
    drop: Values = field(default_factory=dict)
    sd: Values = field(default_factory=dict)
    signatures: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    note: str = ""
    reason: str | None = None


def average_scores(scored: Sequence[ProbeScores]) -> dict[str, float]:
    return {
        name: float(np.mean([each.values[name] for each in scored])) for name in scored[0].values
    }


def compute_deviations(scored: Sequence[ProbeScores]) -> dict[str, float]:
    """Population standard deviations; infinite if some scores are, and not all are equal."""
    found = {}
    for name in scored[0].values:
        values = np.array([each.values[name] for each in scored])
        if np.isfinite(values).all():
            found[name] = float(np.std(values))
        else:
            found[name] = 0.0 if (values == values[0]).all() else float("inf")
    return found


def compute_drops(before: Values, after: Values) -> dict[str, float]:
    """Scores before minus scores after; 0 if both are the same infinity."""
    return {
        name: 0.0 if value == after[name] else value - after[name] for name, value in before.items()
    }


# Scores one caption for each image, as tokens.
Scorer = Callable[[Sequence[str], PreparedReferences], ProbeScores]


def make_scorer(
    metrics: Iterable[str],
    jvm: Jvm,
    tools: Mapping[str, Mapping[str, Any]] | None = None,
) -> Scorer:
    """Make a scorer for metrics by name (`bleu`: all four), of any family that compares captions
    with references. `tools` are what these need besides captions, by the names of their tasks:
    `parse`, `vectors`, `encoder` (for which tokens are joined by blanks), `model`; metrics whose
    tools are missing raise MetricUnavailable. The scorer remembers: probes share captions (people's
    first reference is in five of them), and no metric scores the same captions twice.
    """
    names = catalogue.expand_groups(metrics)
    tasks = catalogue.list_metric_tasks(names)
    for task in tasks:
        row = FAMILIES.get(find_family_name(task))
        if row is None or not row.is_probed:
            raise UnknownMetric(f"{task} does not compare captions with references")
    known: dict[tuple[PreparedReferences, tuple[str, ...]], ProbeScores] = {}

    def score(captions: Sequence[str], references: PreparedReferences) -> ProbeScores:
        asked = (references, tuple(captions))
        if asked not in known:
            known[asked] = measure(captions, references)
        return known[asked]

    def measure(captions: Sequence[str], references: PreparedReferences) -> ProbeScores:
        rows = np.arange(len(captions))
        values: dict[str, float] = {}
        signatures: dict[str, str] = {}
        for task in tasks:
            own = (tools or {}).get(task, {})
            found = postgen.score_tokens(
                find_family_name(task), captions, references, rows, jvm, **own
            )
            values |= found.corpus
            signatures |= found.signatures
        return ProbeScores(
            {name: values[name] for name in names}, {name: signatures[name] for name in names}
        )

    return score
