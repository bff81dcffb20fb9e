"""Corpus scores of one caption for each image, by any post-gen metrics."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from service.contract.errors import UnknownMetric
from service.contract.metrics import catalogue
from service.contract.metrics.families import FAMILIES, kind_of
from workers.analysis.probing.table import ProbeScores
from workers.metrics import postgen
from workers.metrics.java.jvm import Jvm
from workers.metrics.references import References

Scorer = Callable[[Sequence[str], References], ProbeScores]  # one caption for each image, as tokens


def scorer(
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
    names = catalogue.expand(metrics)
    tasks = catalogue.tasks_of(names)
    for task in tasks:
        row = FAMILIES.get(kind_of(task))
        if row is None or not row.is_probed:
            raise UnknownMetric(f"{task} does not compare captions with references")
    known: dict[tuple[References, tuple[str, ...]], ProbeScores] = {}

    def score(captions: Sequence[str], references: References) -> ProbeScores:
        asked = (references, tuple(captions))
        if asked not in known:
            known[asked] = measure(captions, references)
        return known[asked]

    def measure(captions: Sequence[str], references: References) -> ProbeScores:
        rows = np.arange(len(captions))
        values: dict[str, float] = {}
        signatures: dict[str, str] = {}
        for task in tasks:
            own = (tools or {}).get(task, {})
            found = postgen.score_tokens(kind_of(task), captions, references, rows, jvm, **own)
            values |= found.corpus
            signatures |= found.signatures
        return ProbeScores(
            {name: values[name] for name in names}, {name: signatures[name] for name in names}
        )

    return score
