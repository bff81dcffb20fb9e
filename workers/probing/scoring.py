"""Corpus scores of one caption for each image, by any post-gen metrics."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from service.contract import catalogue
from service.contract.errors import MetricUnavailable
from workers.control import Stop, never
from workers.metrics import bertscore, postgen
from workers.metrics.encoder import Encoder
from workers.metrics.jvm import Jvm
from workers.metrics.references import References
from workers.metrics.scene_graphs import Parse
from workers.metrics.word_vectors import WordVectors
from workers.probing.table import Scored

Scorer = Callable[[Sequence[str], References], Scored]  # tokens of each image, in its order


def scorer(
    metrics: Iterable[str],
    jvm: Jvm,
    *,
    parse: Parse | None = None,
    vectors: WordVectors | None = None,
    encoder: Encoder | None = None,
    stop: Stop = never,
) -> Scorer:
    """For metrics by name (`bleu`: all four), of any family that scores tokens; `parse` is for
    SPICE and SPIDEr, `vectors` for WMD, `encoder` for BERTScore (of tokens, joined by blanks);
    without them those raise MetricUnavailable. It remembers:
    probes share captions (people's first reference is in five of them), and a metric is not asked
    twice for the same.
    """
    names = catalogue.expand(metrics)
    families = catalogue.works_of(names)
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
            if family == "bertscore":
                found = _bertscore(captions, references, encoder, stop)
            else:
                found = postgen.score_tokens(
                    family,
                    captions,
                    references,
                    np.arange(len(captions)),
                    jvm,
                    parse=parse,
                    vectors=vectors,
                    stop=stop,
                )
            values |= found.corpus
            signatures |= found.signatures
        return Scored(
            {name: values[name] for name in names}, {name: signatures[name] for name in names}
        )

    return score


def _bertscore(
    captions: Sequence[str], references: References, encoder: Encoder | None, stop: Stop
) -> postgen.Scores:
    if encoder is None:
        raise MetricUnavailable("BERTScore needs a model, and was given none")
    prepared = bertscore.prepare(references.captions, encoder, stop=stop)
    rows = range(len(captions))
    return postgen.score_texts(
        captions, rows, prepared, encoder, signature=references.signature, stop=stop
    )
