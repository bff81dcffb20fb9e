"""The post-gen metrics that need captions and references alone, in two steps: statistics of every
caption, then the corpus score from them. Shards, subsets and resamples take the second step again.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from service.contract.errors import MetricFailed, UnknownMetric
from service.contract.formats.outputs import LONGEST_PARSED
from service.contract.plan.works import KINDS
from workers.files import tensor_files
from workers.metrics.families import bertscore, bleu, cider, meteor, rouge_l, spice, spider, wmd
from workers.metrics.families.bertscore import Prepared
from workers.metrics.families.variety import Variety
from workers.metrics.family import Family, Floats, Idf, Measured, Statistics, Task
from workers.metrics.java.jvm import Jvm
from workers.metrics.references import References
from workers.metrics.scenes.scene_graphs import Parse
from workers.metrics.scenes.tuples import PARSER
from workers.metrics.tokens import SIGNATURES, Tokenizer
from workers.metrics.vectors.encoder import Encoder
from workers.metrics.vectors.word_vectors import WordVectors
from workers.progress import Progress, Stop, never, silent


def _fixed(recipe: str) -> Callable[[Task], str]:
    return lambda _: recipe


def _mean_nneval(statistics: Statistics) -> dict[str, float]:
    """By the metric's name, which may say its model."""
    return {name: float(np.mean(values)) for name, values in statistics.items()}


_TUPLES = f"parser:{PARSER}|words:{LONGEST_PARSED}"
FAMILIES: Mapping[str, Family] = {
    "bleu": Family(bleu.measure, bleu.corpus, _fixed("reflen:closest")),
    "rouge_l": Family(rouge_l.measure, rouge_l.corpus, _fixed("beta:1.2")),
    "cider_d": Family(cider.measure_d, cider.corpus_d, cider.recipe),
    "cider": Family(cider.measure, cider.corpus, cider.recipe),
    "meteor": Family(meteor.measure, meteor.corpus, _fixed("jar:1.5|lang:en|norm:yes")),
    "spice": Family(spice.measure, spice.corpus, _fixed(_TUPLES)),
    "spider": Family(spider.measure, spider.corpus, lambda task: f"{cider.recipe(task)}|{_TUPLES}"),
    "wmd": wmd.family("wmd", unit=False),
    "wmd_unit": wmd.family("wmd_unit", unit=True),
}
# Of families that are not measured from tokens and references alone.
_CORPUS = {"bertscore": bertscore.corpus, "nneval": _mean_nneval}


@dataclass(frozen=True)
class Scores:
    """Fractions (BLEU .33, CIDEr-D .95). The arrays' first axis is that of the captions given."""

    family: str
    corpus: dict[str, float]
    captions: dict[str, Floats]
    statistics: Statistics
    signatures: dict[str, str]


def score_tokens(
    family: str,
    tokens: Sequence[str],
    references: References,
    rows: NDArray[np.integer[Any]],
    jvm: Jvm,
    *,
    parse: Parse | None = None,
    vectors: WordVectors | None = None,
    idf: Idf = "dataset",
    stop: Stop = never,
    progress: Progress = silent,
) -> Scores:
    """Captions are tokens, as the references are; rows[i] is the image that caption i answers;
    `parse` is for SPICE and SPIDEr, `vectors` for WMD. MetricFailed where they do not fit together,
    JavaFailed where Java fails us, MetricUnavailable where something is wanting.

    `idf`: CIDEr's document frequencies are those of the whole split, so that part of it is scored
    on the whole's scale; "subset" takes those of the images that are answered, `Counted` those of
    any.
    """
    chosen = _family(family)
    _check(tokens, references, rows)
    task = Task(tokens, rows.astype(np.int64), references, jvm, idf, stop, progress, parse, vectors)
    found = chosen.measure(task)
    return scores_of(family, found, references.signature, chosen.recipe(task))


def spider_of(of_spice: Scores, of_cider_d: Scores, references: References) -> Scores:
    """SPIDEr where its halves have been computed, for the same captions."""
    found = spider.join(of_spice.statistics, of_cider_d.statistics)
    (weights,) = re.findall(r"\|(df:[^|]*)", of_cider_d.signatures["cider_d"])
    return scores_of("spider", found, references.signature, f"{weights}|{_TUPLES}")


def scores_of(family: str, found: Measured, references: str, recipe: str) -> Scores:
    """What was measured, summed up and signed."""
    version = KINDS[family].version
    return Scores(
        family=family,
        corpus=corpus_from_statistics(family, found.statistics),
        captions=found.captions,
        statistics=found.statistics,
        signatures={name: f"{name}|{references}|{recipe}|v:{version}" for name in found.captions},
    )


def score_texts(
    captions: Sequence[str],
    rows: Sequence[int],
    references: Prepared,
    encoder: Encoder,
    *,
    signature: str | None = None,
    idf: bool = False,
    baseline: float | None = None,
    stop: Stop = never,
    progress: Progress = silent,
) -> Scores:
    """BERTScore, of captions as they are; `signature` says how the references were made, where
    they are not as people wrote them.
    """
    found = bertscore.measure(
        captions,
        rows,
        references,
        encoder,
        idf=idf,
        baseline=baseline,
        stop=stop,
        progress=progress,
    )
    recipe = bertscore.recipe(references, idf=idf, baseline=baseline)
    return scores_of("bertscore", found, signature or bertscore.signed(references), recipe)


def described(found: Variety, tokenizer: Tokenizer) -> Scores:
    """What captions are like, as scores: counts of a whole, with nothing to sum up from parts."""
    corpus = {"caption_length": found.mean_length, "words_used": float(found.vocabulary)}
    corpus |= {f"distinct_{n}": share for n, share in enumerate(found.distinct_share, 1)}
    corpus |= {f"entropy_{n}": bits for n, bits in enumerate(found.entropy[:2], 1)}
    captions = {"caption_length": found.lengths.astype(np.float64)}
    if found.known is not None:
        captions["from_training"] = found.known.astype(np.float64)
        corpus["from_training"] = float(found.known.mean())
    how = f"tok:{SIGNATURES[tokenizer]}|v:{KINDS['variety'].version}"
    signatures = {name: f"{name}|n={len(found.lengths)}|{how}" for name in corpus}
    return Scores("variety", corpus, captions, {}, signatures)


def corpus_from_statistics(family: str, statistics: Statistics) -> dict[str, float]:
    """The corpus scores of any choice of captions: the same rows taken from every array."""
    corpus = _CORPUS[family] if family in _CORPUS else _family(family).corpus
    return corpus(statistics)


def write(path: Path, scores: Scores, more: Mapping[str, Any] | None = None) -> None:
    """One safetensors file: captions/…, statistics/…; the rest, and `more`, as JSON in its
    metadata.
    """
    tensors = {
        f"{part}/{name}": values
        for part in ("captions", "statistics")
        for name, values in getattr(scores, part).items()
    }
    metadata = {
        "prescore_scores": "1",
        "family": scores.family,
        "corpus": json.dumps(scores.corpus),
        "signatures": json.dumps(scores.signatures),
        **{name: json.dumps(value) for name, value in (more or {}).items()},
    }
    tensor_files.write(path, tensors, metadata)


def read(path: Path) -> Scores:
    """What `write` wrote; MetricFailed where the file is something else."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("prescore_scores") != "1":
                raise MetricFailed(f"expected scores of format 1 in {path.name}")
            parts: dict[str, dict[str, Floats]] = {"captions": {}, "statistics": {}}
            for key in file.keys():  # noqa: SIM118  a file, not a dict
                part, name = key.split("/")
                parts[part][name] = file.get_tensor(key)
            corpus, signatures = (json.loads(metadata[key]) for key in ("corpus", "signatures"))
    except (SafetensorError, ValueError, KeyError) as error:
        raise MetricFailed(f"{path.name} is no file of scores: {error}") from None
    return Scores(metadata["family"], corpus, parts["captions"], parts["statistics"], signatures)


def _family(name: str) -> Family:
    try:
        return FAMILIES[name]
    except KeyError:
        known = ", ".join(FAMILIES)
        raise UnknownMetric(f"expected one of the families {known}, found {name!r:.60}") from None


def _check(captions: Sequence[str], references: References, rows: NDArray[np.integer[Any]]) -> None:
    if not captions:
        raise MetricFailed("expected at least one caption, found none")
    if rows.shape != (len(captions),) or not np.issubdtype(rows.dtype, np.integer):
        raise MetricFailed(
            f"expected a row number for each of {len(captions)} captions, "
            f"found {rows.dtype} {rows.shape}"
        )
    if rows.min() < 0 or rows.max() >= references.images:
        raise MetricFailed(
            f"expected rows of {references.images} images, found {rows.min()} to {rows.max()}"
        )
