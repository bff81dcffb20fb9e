"""The metrics of captions, in two steps: statistics of every caption, then the corpus score from
them. Shards, subsets and resamples take the second step again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from service.contract.errors import MetricFailed, UnknownMetric
from service.contract.metrics import families
from service.contract.metrics.families import kind_of
from workers.files import tensor_files
from workers.metrics.families import (
    bertscore,
    bleu,
    cider,
    meteor,
    rouge_l,
    spice,
    spider,
    variety,
    wmd,
)
from workers.metrics.family import Family, Floats, Idf, Measured, Scores, Statistics, Task
from workers.metrics.java.jvm import Jvm
from workers.metrics.learned import scoring as learned
from workers.metrics.references import References
from workers.progress import Progress, silent

# What is known of a family beside this stands in its row: service.contract.metrics.families.
FAMILIES: dict[str, Family] = {
    "bleu": Family(bleu.measure, bleu.corpus, lambda _: "reflen:closest"),
    "rouge_l": Family(rouge_l.measure, rouge_l.corpus, lambda _: "beta:1.2"),
    "cider_d": Family(cider.measure_d, cider.corpus_d, cider.recipe),
    "cider": Family(cider.measure, cider.corpus, cider.recipe),
    "meteor": Family(
        meteor.measure,
        meteor.corpus,
        lambda _: "jar:1.5|lang:en|norm:yes",
        expect=meteor.expect,
    ),
    "spice": Family(spice.measure, spice.corpus, lambda _: spice.RECIPE),
    "spider": Family(spider.measure, spider.corpus, spider.recipe, join=spider.joined),
    "wmd": wmd.family("wmd", unit=False),
    "wmd_unit": wmd.family("wmd_unit", unit=True),
    "bertscore": Family(
        bertscore.of_task,
        bertscore.corpus,
        bertscore.recipe_of,
        against=bertscore.against,
        complete=bertscore.completed,
    ),
    "nneval": Family(learned.measure, learned.corpus, learned.recipe),
    "variety": Family(variety.describe, None, variety.recipe, against=variety.counted),
}


def score(family: str, task: Task) -> Scores:
    """MetricFailed where things do not fit together, JavaFailed where Java fails us,
    MetricUnavailable where something is wanting.
    """
    chosen = _family(family)
    _check(task.captions, task.rows, task.prepared)
    task = chosen.complete(replace(task, others=score))
    found = chosen.measure(task)
    return _scores(family, found, f"{chosen.against(task)}|{chosen.recipe(task)}")


def score_tokens(
    family: str,
    tokens: Sequence[str],
    references: References,
    rows: NDArray[np.integer[Any]],
    jvm: Jvm,
    *,
    idf: Idf = "dataset",
    progress: Progress = silent,
    **tools: Any,
) -> Scores:
    """Captions are tokens, as the references are; rows[i] is the image that caption i answers;
    `tools` are what the family needs beside these: `parse`, `vectors`, `encoder`, `model`.

    `idf`: CIDEr's document frequencies are those of the whole split, so that part of it is scored
    on the whole's scale; "subset" takes those of the images that are answered, `Counted` those of
    any.
    """
    by = references.tokenizer
    _check(tokens, rows, references)
    places = rows.astype(np.int64)
    task = Task(tokens, places, references, jvm, idf, progress, tokenizer=by, tools=tools)
    return score(family, task)


def joined(family: str, parts: Mapping[str, Scores], references: References) -> Scores:
    """The scores of a family where those that it is made of have scored the same captions."""
    join = _family(family).join
    if join is None:
        raise UnknownMetric(f"{family} is not made of other families' scores")
    found, recipe = join(parts)
    return _scores(family, found, f"{references.signature}|{recipe}")


def _scores(family: str, found: Measured, how: str) -> Scores:
    """What was measured, summed up and signed."""
    whole = _family(family).corpus is None
    corpus = found.corpus if whole else corpus_from_statistics(family, found.statistics)
    version = families.FAMILIES[family].version
    return Scores(
        family=family,
        corpus=corpus,
        captions=found.captions,
        statistics=found.statistics,
        signatures={name: f"{kind_of(name)}|{how}|v:{version}" for name in corpus},
    )


def corpus_from_statistics(family: str, statistics: Statistics) -> dict[str, float]:
    """The corpus scores of any choice of captions: the same rows taken from every array."""
    corpus = _family(family).corpus
    if corpus is None:
        raise UnknownMetric(f"{family} is of a whole, and cannot be computed from its parts")
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


def _check(
    captions: Sequence[str], rows: NDArray[np.integer[Any]], references: References | None
) -> None:
    if not captions:
        raise MetricFailed("expected at least one caption, found none")
    if rows.shape != (len(captions),) or not np.issubdtype(rows.dtype, np.integer):
        raise MetricFailed(
            f"expected a row number for each of {len(captions)} captions, "
            f"found {rows.dtype} {rows.shape}"
        )
    if references is not None and (rows.min() < 0 or rows.max() >= references.images):
        raise MetricFailed(
            f"expected rows of {references.images} images, found {rows.min()} to {rows.max()}"
        )
