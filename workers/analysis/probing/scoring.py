"""Corpus scores of one caption for each image, by any post-gen metrics."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from service.contract.errors import UnknownMetric
from service.contract.metrics import catalogue
from service.contract.metrics.families import FAMILIES
from workers.analysis.probing.table import Scored
from workers.metrics import postgen
from workers.metrics.java.jvm import Jvm
from workers.metrics.references import References

Scorer = Callable[[Sequence[str], References], Scored]  # tokens of each image, in its order


def scorer(metrics: Iterable[str], jvm: Jvm, **tools: Any) -> Scorer:
    """For metrics by name (`bleu`: all four), of any family that compares captions with references;
    `tools` are what these need beside captions: `parse`, `vectors`, `encoder` (for which tokens are
    joined by blanks), `model`; without them those raise MetricUnavailable. It remembers: probes
    share captions (people's first reference is in five of them), and a metric is not asked twice
    for the same.
    """
    names = catalogue.expand(metrics)
    families = catalogue.works_of(names)
    for family in families:
        if family not in FAMILIES or not FAMILIES[family].is_probed:
            raise UnknownMetric(f"{family} does not compare captions with references")
    known: dict[tuple[References, tuple[str, ...]], Scored] = {}

    def score(captions: Sequence[str], references: References) -> Scored:
        asked = (references, tuple(captions))
        if asked not in known:
            known[asked] = measure(captions, references)
        return known[asked]

    def measure(captions: Sequence[str], references: References) -> Scored:
        rows = np.arange(len(captions))
        values: dict[str, float] = {}
        signatures: dict[str, str] = {}
        for family in families:
            found = postgen.score_tokens(family, captions, references, rows, jvm, **tools)
            values |= found.corpus
            signatures |= found.signatures
        return Scored(
            {name: values[name] for name in names}, {name: signatures[name] for name in names}
        )

    return score
