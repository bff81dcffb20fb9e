"""The metric `accord_large`: the sum of `accord`, and what all-MiniLM-L6-v2 says of a caption
beside its references, weighted as the features of `accord` are (`workers/metrics/accord`).

The weights hold for the vectors of that very model. It reads captions and references as they were
written, or, where a task has tokens alone, these joined by blanks. What it says counts until a
caption is as near as people's captions usually are to each other; beyond that the words decide.
"""

import numpy as np

from service.contract.errors import MetricUnavailable
from workers.metrics.accord import features, large
from workers.metrics.accord.model import Model
from workers.metrics.families import bertscore
from workers.metrics.families.bertscore import Beside, Prepared
from workers.metrics.family import Floats, Measured, Statistics, Task
from workers.metrics.ngrams import Ints
from workers.metrics.vectors.encoder import Embedded, Encoder
from workers.metrics.vectors.reference_sets import distinct

NAMES = (
    "accord_sum",  # of the features of `accord` by its weights, as a share of the highest sum
    "meant_precision",  # the mean over its words of the cosine to the nearest of any reference
    "meant_recall",  # BERTScore's recall, its mean over references
    "sentence_best",  # the cosine of the sentences' vectors, with the closest reference
    "sentence_mean",  # its mean over references
)


def completed(task: Task) -> Task:
    """The task with the references embedded, if no work has done so before."""
    encoder: Encoder | None = task.tools.get("encoder")
    expected = large.shipped().encoder
    if encoder is None:
        raise MetricUnavailable("accord_large needs all-MiniLM-L6-v2, and was given no model")
    if encoder.name != expected:
        raise MetricUnavailable(
            f"expected all-MiniLM-L6-v2 ({_shown(expected)}), for whose vectors alone the weights "
            f"of accord_large hold, found another model ({_shown(encoder.name)}); "
            "`prescore assets add minilm` brings it"
        )
    return bertscore.completed(task)


def measure(task: Task) -> Measured:
    found = large.shipped()
    scores = found(cut(measured(task, found.small), found.enough))
    return Measured({"accord_large": scores}, {"accord_large": scores})


def measured(task: Task, small: Model) -> Floats:
    """The features (captions, NAMES) of a completed task's captions, from 0 to 1, not yet cut."""
    sums = features.measure(task, small.language) @ small.weights / small.weights.sum()
    found: Floats = np.clip(np.column_stack([sums, _meant(task)]), 0, 1)
    return found


def cut(values: Floats, enough: Floats) -> Floats:
    """Features as shares of what is `enough` of each; more counts no more."""
    found: Floats = np.minimum(values / enough, 1)
    return found


def corpus(statistics: Statistics) -> dict[str, float]:
    return {"accord_large": float(np.mean(statistics["accord_large"]))}


def recipe(task: Task) -> str:
    """`texts` says whether the encoder read captions as they were written, or their tokens."""
    found = large.shipped()
    read = "written" if "texts" in task.tools else "tokens"
    return f"model:{found.digest[:12]}|encoder:{found.encoder[:12]}|texts:{read}"


def _shown(encoder: str) -> str:
    digest, layer = encoder.split("/")
    return f"SHA-256 of its files {digest:.12}…, layer {layer}"


def _meant(task: Task) -> Floats:
    encoder: Encoder = task.tools["encoder"]
    references: Prepared = task.tools["embedded"]
    bertscore.check_same(references, encoder)
    texts, places = distinct(task.texts)
    embedded = encoder.embed(texts, progress=task.progress)
    rows = task.rows.tolist()
    each = bertscore.besides(embedded, places, rows, references, encoder, progress=task.progress)
    many = np.diff(references.images)[task.rows]
    words = [_words(beside, count) for beside, count in zip(each, many.tolist(), strict=True)]
    ours, theirs = (_sentences(each, encoder) for each in (embedded, references.embedded))
    sentences = _cosines(ours[places], task.rows, theirs, references)
    return np.concatenate([words, sentences], axis=1)


def _words(beside: Beside | None, references: int) -> tuple[float, float]:
    """Of so many references; those without words, and negative means of cosines, count as 0."""
    if beside is None or not beside.filled.any():
        return 0.0, 0.0
    recalls = np.where(beside.filled, np.maximum(beside.recalls, 0), 0)
    nearest = beside.alike[:, beside.theirs > 0].max(axis=1)
    return float(beside.own @ nearest), float(recalls.sum() / references)


def _sentences(embedded: Embedded, encoder: Encoder) -> Floats:
    """The direction of the mean of each sentence's token vectors; zeros if it has no words. Tokens
    count the same, whereas in RefScore longer vectors count more: so references are embedded once.
    """
    of = np.repeat(np.arange(len(embedded.cut)), np.diff(embedded.offsets))
    filled = np.bincount(of, ~np.isin(embedded.tokens, list(encoder.special)), len(embedded.cut))
    sums = np.zeros((len(embedded.cut), encoder.size))
    some = np.diff(embedded.offsets) > 0
    sums[some] = np.add.reduceat(embedded.vectors, embedded.offsets[:-1][some], dtype=np.float64)
    sums[filled == 0] = 0
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    directions: Floats = sums / np.where(lengths > 0, lengths, 1)
    return directions


def _cosines(ours: Floats, rows: Ints, theirs: Floats, references: Prepared) -> Floats:
    """The highest and the mean cosine (captions, 2) with the references."""
    found = np.empty((len(rows), 2))
    for index, row in enumerate(rows.tolist()):
        people = references.sentences[references.images[row] : references.images[row + 1]]
        cosines = theirs[people] @ ours[index]
        found[index] = cosines.max(), cosines.mean()
    return found
