"""The metrics of captions, in two steps: statistics of every caption, then the corpus score from
them. Shards, subsets and resamples repeat only the second step.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import MetricFailed, MetricUnavailable, UnknownMetric
from service.contract.metrics import families, tokenizers
from service.contract.metrics.families import find_family_name
from workers import tensor_files
from workers.metrics.families import (
    accord_large,
    bertscore,
    bleu,
    chair,
    cider,
    meteor,
    refscore,
    rouge_l,
    spice,
    spider,
    variety,
    wmd,
)
from workers.metrics.family import (
    FamilyFunctions,
    FamilyMeasures,
    FamilyScores,
    Floats,
    Idf,
    ScoringInput,
    Statistics,
)
from workers.metrics.java.jvm import Jvm
from workers.metrics.learned import kinds
from workers.metrics.learned.kinds import KINDS
from workers.metrics.marked_files import Tensors, read_marked_file
from workers.metrics.references import PreparedReferences
from workers.progress import Progress, ignore_progress

_MARK, _FORMAT = "prescore_scores", "1"

# All other facts of a family are in its row: service.contract.metrics.families.
FAMILY_FUNCTIONS: dict[str, FamilyFunctions] = {
    "bleu": FamilyFunctions(bleu.measure, lambda _: "reflen:closest", bleu.corpus),
    "rouge_l": FamilyFunctions(rouge_l.measure, lambda _: "beta:1.2"),
    "cider_d": FamilyFunctions(cider.measure_d, cider.recipe),
    "cider": FamilyFunctions(cider.measure, cider.recipe),
    "meteor": FamilyFunctions(
        meteor.measure,
        lambda _: "jar:1.5|lang:en|norm:yes",
        meteor.corpus,
        expect=meteor.expect,
    ),
    "spice": FamilyFunctions(spice.measure, lambda _: spice.RECIPE, spice.corpus),
    "spider": FamilyFunctions(spider.measure, spider.recipe, spider.corpus, join=spider.join),
    "wmd": wmd.make_wmd_family("wmd", unit=False),
    "wmd_unit": wmd.make_wmd_family("wmd_unit", unit=True),
    "chair": FamilyFunctions(chair.measure, chair.recipe, chair.corpus),
    "bertscore": FamilyFunctions(
        bertscore.measure,
        bertscore.recipe,
        bertscore.corpus,
        against=bertscore.against,
        complete=bertscore.complete,
    ),
    "refscore": FamilyFunctions(
        refscore.measure,
        refscore.recipe,
        against=refscore.against,
        complete=refscore.complete,
    ),
    **{name: kinds.make_learned_family(name) for name in KINDS},
    "accord_large": FamilyFunctions(
        accord_large.measure, accord_large.recipe, complete=accord_large.complete
    ),
    "variety": FamilyFunctions(variety.measure, variety.recipe, None, against=variety.against),
}


def check_blanks(family: str, task: ScoringInput) -> None:
    """Raise MetricUnavailable where a family needs blanks between words, and most captions, or
    references, are of a script without them: they would score 0 as if they were English.
    """
    if not families.FAMILIES[family].needs_blanks:
        return
    people = (text for image in task.references.captions for text in image)
    for side, texts in (("captions", task.captions), ("references", people)):
        if tokenizers.are_mostly_unbroken(texts):
            raise MetricUnavailable(
                f"{family} is for English: most {side} have no blanks between words; ask for other "
                'metrics, by words that blanks split and the tokenizer "none"'
            )


def score_family(family: str, task: ScoringInput) -> FamilyScores:
    """Score a task by a family. Raises MetricFailed, JavaFailed or MetricUnavailable."""
    chosen = _family(family)
    _check(task.captions, task.rows, task.prepared)
    task = chosen.complete(replace(task, others=score_family))
    found = chosen.measure(task)
    return _scores(family, found, f"{chosen.against(task)}|{chosen.recipe(task)}")


def score_tokens(
    family: str,
    tokens: Sequence[str],
    references: PreparedReferences,
    rows: NDArray[np.integer[Any]],
    jvm: Jvm,
    *,
    idf: Idf = "dataset",
    progress: Progress = ignore_progress,
    **tools: Any,
) -> FamilyScores:
    """Score captions that are tokens, as the references are; rows[i] is the image that caption i
    answers; `tools` are what the family needs besides: `parse`, `vectors`, `encoder`, `model`.

    `idf`: by default, CIDEr's document frequencies are those of the whole split, so that a part of
    it is scored on the scale of the whole; "subset" takes those of the images that are answered,
    `IdfImages` those of any images.
    """
    by = references.tokenizer
    _check(tokens, rows, references)
    places = rows.astype(np.int64)
    task = ScoringInput(tokens, places, references, jvm, idf, progress, tokenizer=by, tools=tools)
    return score_family(family, task)


def join_scores(
    family: str, parts: Mapping[str, FamilyScores], references: PreparedReferences
) -> FamilyScores:
    """A family's scores from those of the families that it is made of, for the same captions."""
    join = _family(family).join
    if join is None:
        raise UnknownMetric(f"{family} is not made of other families' scores")
    found, recipe = join(parts)
    return _scores(family, found, f"{references.signature}|{recipe}")


def _scores(family: str, found: FamilyMeasures, how: str) -> FamilyScores:
    """Scores from what was measured: summed up, with signatures."""
    whole = _family(family).corpus is None
    corpus = found.corpus if whole else compute_corpus_scores(family, found.statistics)
    version = families.FAMILIES[family].version
    return FamilyScores(
        family=family,
        corpus=corpus,
        captions=found.captions,
        statistics=found.statistics,
        signatures={name: f"{find_family_name(name)}|{how}|v:{version}" for name in corpus},
    )


def compute_corpus_scores(family: str, statistics: Statistics) -> dict[str, float]:
    """The corpus scores of any choice of captions: take the same rows from every array."""
    corpus = _family(family).corpus
    if corpus is None:
        raise UnknownMetric(f"{family} needs all captions, and cannot be computed from parts")
    return corpus(statistics)


def write_scores(path: Path, scores: FamilyScores, more: Mapping[str, Any] | None = None) -> None:
    """Write scores as one safetensors file; its metadata has the rest, and `more`, as JSON."""
    tensors = {
        f"{part}/{name}": values
        for part in ("captions", "statistics")
        for name, values in getattr(scores, part).items()
    }
    metadata = {
        _MARK: _FORMAT,
        "family": scores.family,
        "corpus": json.dumps(scores.corpus),
        "signatures": json.dumps(scores.signatures),
        **{name: json.dumps(value) for name, value in (more or {}).items()},
    }
    tensor_files.write_tensors(path, tensors, metadata)


def read_scores(path: Path) -> FamilyScores:
    """Read a file that `write` made. Raises MetricFailed if the file is something else."""

    def restore_scores(metadata: Mapping[str, str], tensors: Tensors) -> FamilyScores:
        parts: dict[str, dict[str, Floats]] = {"captions": {}, "statistics": {}}
        for key, values in tensors.items():
            part, name = key.split("/")
            parts[part][name] = values
        corpus, signatures = (json.loads(metadata[key]) for key in ("corpus", "signatures"))
        return FamilyScores(metadata["family"], corpus, **parts, signatures=signatures)

    return read_marked_file(path, _MARK, _FORMAT, "scores", restore_scores)


def _family(name: str) -> FamilyFunctions:
    try:
        return FAMILY_FUNCTIONS[name]
    except KeyError:
        known = ", ".join(FAMILY_FUNCTIONS)
        raise UnknownMetric(f"expected one of the families {known}, found {name!r:.60}") from None


def _check(
    captions: Sequence[str], rows: NDArray[np.integer[Any]], references: PreparedReferences | None
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
