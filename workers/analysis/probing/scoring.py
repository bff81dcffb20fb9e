"""Corpus scores of one caption for each image, by any post-gen metrics."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from service.contract.errors import MetricUnavailable
from service.contract.metrics import catalogue
from workers.analysis.probing.table import Scored
from workers.metrics import postgen
from workers.metrics.families import bertscore
from workers.metrics.java.jvm import Jvm
from workers.metrics.learned import scoring as learned
from workers.metrics.learned.model import Model
from workers.metrics.postgen import Scores
from workers.metrics.references import References
from workers.metrics.scenes.scene_graphs import Parse
from workers.metrics.vectors.encoder import Encoder
from workers.metrics.vectors.word_vectors import WordVectors
from workers.progress import Stop, never

Scorer = Callable[[Sequence[str], References], Scored]  # tokens of each image, in its order


def scorer(
    metrics: Iterable[str],
    jvm: Jvm,
    *,
    parse: Parse | None = None,
    vectors: WordVectors | None = None,
    encoder: Encoder | None = None,
    model: Model | None = None,
    stop: Stop = never,
) -> Scorer:
    """For metrics by name (`bleu`: all four), of any family that compares captions with references;
    `parse` is for SPICE and SPIDEr, `vectors` for WMD, `encoder` for BERTScore (of tokens, joined
    by blanks), `model` for NNEval; without them those raise MetricUnavailable. It remembers: probes
    share captions (people's first reference is in five of them), and a metric is not asked twice
    for the same.
    """
    names = catalogue.expand(metrics)
    families = catalogue.works_of(names)
    bench = _Bench(jvm, parse, vectors, encoder, model, stop)
    known: dict[tuple[References, tuple[str, ...]], Scored] = {}

    def score(captions: Sequence[str], references: References) -> Scored:
        asked = (references, tuple(captions))
        if asked not in known:
            known[asked] = measure(captions, references)
        return known[asked]

    def measure(captions: Sequence[str], references: References) -> Scored:
        values: dict[str, float] = {}
        signatures: dict[str, str] = {}
        for family in families:
            found = bench.measured(family, captions, references)
            values |= found.corpus
            signatures |= found.signatures
        return Scored(
            {name: values[name] for name in names}, {name: signatures[name] for name in names}
        )

    return score


@dataclass(frozen=True, eq=False)
class _Bench:
    """What metrics are computed with."""

    jvm: Jvm
    parse: Parse | None
    vectors: WordVectors | None
    encoder: Encoder | None
    model: Model | None
    stop: Stop

    def measured(self, family: str, captions: Sequence[str], references: References) -> Scores:
        if family == "bertscore":
            return self._bertscore(captions, references)
        if family == catalogue.LEARNED:
            score = partial(learned.score_tokens, model=self.model)
        else:
            score = partial(postgen.score_tokens, family)
        return score(
            captions,
            references,
            np.arange(len(captions)),
            self.jvm,
            parse=self.parse,
            vectors=self.vectors,
            stop=self.stop,
        )

    def _bertscore(self, captions: Sequence[str], references: References) -> Scores:
        if self.encoder is None:
            raise MetricUnavailable("BERTScore needs a model, and was given none")
        prepared = bertscore.prepare(references.captions, self.encoder, stop=self.stop)
        return postgen.score_texts(
            captions,
            range(len(captions)),
            prepared,
            self.encoder,
            signature=references.signature,
            stop=self.stop,
        )
