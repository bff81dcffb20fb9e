"""BERTScore (Zhang et al. 2020): every token is matched to the most similar one of the other side.

Precision is the mean, over a caption's tokens, of their cosine to the most similar token of a
reference; recall is the same from the reference to the caption; F1 is their harmonic mean. The
reference with the highest F1 counts. As in the published package, a sentence's two special tokens
have no weight but may be matched, and an empty side has F1 0 (where the package fails now).

Sentences are taken as they are, because models know people's own captions, not tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from service.contract.errors import MetricFailed, MetricUnavailable
from workers.files import tensor_files
from workers.metrics.family import Floats, Measured, ScoringInput, Statistics
from workers.metrics.ngrams import Ints
from workers.metrics.references import counted
from workers.metrics.vectors.encoder import Embedded, TextEncoder
from workers.metrics.vectors.reference_sets import collect, distinct, join_offsets, join_places
from workers.progress import Progress, ignore_progress

_FORMAT = "1"
_TENSORS = ("vectors", "tokens", "offsets", "cut", "sentences", "images")
_BLOCK = 500  # captions between two reports of progress


@dataclass(frozen=True)
class Prepared:
    """References of a dataset version, embedded once: `embedded` holds every sentence once.

    sentences (C) i64: the place in `embedded` of each reference;  images (N+1) i64: image i has the
    references from images[i] to images[i+1] in `sentences`
    """

    model: str
    embedded: Embedded
    sentences: NDArray[np.int64]
    images: NDArray[np.int64]

    @property
    def cut(self) -> int:
        """How many references were too long for the model, which saw only their beginning."""
        return int(self.embedded.cut[self.sentences].sum())


def prepare(
    references: Sequence[Sequence[str]],
    encoder: TextEncoder,
    *,
    progress: Progress = ignore_progress,
) -> Prepared:
    """Embed the references. Raises MetricFailed if an image has no reference."""
    texts, sentences, images = collect(references)
    return Prepared(encoder.name, encoder.embed(texts, progress=progress), sentences, images)


def measure(
    captions: Sequence[str],
    rows: Sequence[int],
    references: Prepared,
    encoder: TextEncoder,
    *,
    idf: bool = False,
    baseline: float | None = None,
    progress: Progress = ignore_progress,
) -> Measured:
    """Score captions; rows[i] is the image that caption i answers. `idf`: the fewer of all
    references have a token, the more it weighs. `baseline`: the F1 of unrelated sentences, which
    becomes 0.

    Statistics: precision and recall (each the best of all references, without baseline), and
    `cut`, which is 1 if a caption was too long for the model and only its beginning was scored.
    """
    check_same(references, encoder)
    texts, places = distinct(captions)
    embedded = encoder.embed(texts, progress=progress)
    each = besides(embedded, places, rows, references, encoder, idf=idf, progress=progress)
    found = np.array([_best(beside) for beside in each])
    scores = found[:, 2] if baseline is None else (found[:, 2] - baseline) / (1 - baseline)
    cut = embedded.cut[places].astype(np.float64)
    return Measured(
        {"bertscore": scores},
        {"bertscore": scores, "precision": found[:, 0], "recall": found[:, 1], "cut": cut},
    )


def check_same(references: Prepared, encoder: TextEncoder) -> None:
    if references.model != encoder.name:
        raise MetricFailed("expected references embedded by the same layer of the same model")


@dataclass(frozen=True)
class Beside:
    """A caption's tokens (rows) beside those of its references, with their cosines. The weights of
    a sentence have the sum 1, or 0; references begin at `starts`.
    """

    alike: NDArray[np.float32]
    own: Floats
    theirs: Floats
    starts: Ints

    @property
    def precisions(self) -> Floats:
        best: Floats = self.own @ np.maximum.reduceat(self.alike, self.starts, axis=1)
        return best

    @property
    def recalls(self) -> Floats:
        best: Floats = np.add.reduceat(self.theirs * self.alike.max(axis=0), self.starts)
        return best

    @property
    def filled(self) -> NDArray[np.bool_]:
        """Whether the caption and a reference have tokens with a weight."""
        filled: NDArray[np.bool_] = np.add.reduceat(self.theirs, self.starts) * self.own.sum() > 0
        return filled


def besides(
    captions: Embedded,
    places: Ints,
    rows: Sequence[int],
    references: Prepared,
    encoder: TextEncoder,
    *,
    idf: bool = False,
    progress: Progress = ignore_progress,
) -> Iterator[Beside | None]:
    """The i-th is of the sentence places[i] of `captions`, which answers the image rows[i]; None if
    a side has no tokens.
    """
    weights = _weights(references, encoder, idf=idf)
    mine, theirs = _Side.of(captions, weights), _Side.of(references.embedded, weights)
    for index, row in enumerate(rows):
        if index % _BLOCK == 0:
            progress(len(captions.cut), len(captions.cut))
        people = references.sentences[references.images[row] : references.images[row + 1]]
        yield _beside(mine, places[index], theirs, people.tolist())


def corpus(statistics: Statistics) -> dict[str, float]:
    return {"bertscore": float(np.mean(statistics["bertscore"]))}


def signed(references: Prepared) -> str:
    """The part of a signature that says how many references there are, and what a token is."""
    return f"{counted(references.images)}|tok:model"


def recipe(references: Prepared, *, idf: bool = False, baseline: float | None = None) -> str:
    """What a signature says beyond references, tokens and version."""
    digest, layer = references.model.split("/")
    weights = f"refs(n={len(references.sentences)})" if idf else "no"
    zero = "no" if baseline is None else f"{baseline:.6g}"
    return f"model:{digest[:12]}|layer:{layer}|idf:{weights}|baseline:{zero}"


def completed(task: ScoringInput) -> ScoringInput:
    """The task with the references embedded, if no task has done so before."""
    encoder: TextEncoder | None = task.tools.get("encoder")
    if encoder is None:
        raise MetricUnavailable("BERTScore needs a model, and was given none")
    if "embedded" in task.tools:
        return task
    embedded = prepare(task.people, encoder, progress=task.progress)
    return replace(task, tools={**task.tools, "embedded": embedded})


def of_task(task: ScoringInput) -> Measured:
    return measure(
        task.captions,
        task.rows.tolist(),
        task.tools["embedded"],
        task.tools["encoder"],
        **_options(task),
        progress=task.progress,
    )


def against(task: ScoringInput) -> str:
    return task.references.signature if task.tokenizer else signed(task.tools["embedded"])


def recipe_of(task: ScoringInput) -> str:
    return recipe(task.tools["embedded"], **_options(task))


def _options(task: ScoringInput) -> dict[str, Any]:
    return {name: task.own[name] for name in ("idf", "baseline") if name in task.own}


def join(parts: Sequence[Prepared]) -> Prepared:
    """The references of several parts, with their images one after another. A sentence of two
    parts is there twice, which does no harm.
    """
    embedded = [part.embedded for part in parts]
    return Prepared(
        model=parts[0].model,
        embedded=Embedded(
            vectors=np.concatenate([each.vectors for each in embedded]),
            tokens=np.concatenate([each.tokens for each in embedded]),
            offsets=join_offsets([each.offsets for each in embedded]),
            cut=np.concatenate([each.cut for each in embedded]),
        ),
        sentences=join_places(
            [part.sentences for part in parts], [len(each.cut) for each in embedded]
        ),
        images=join_offsets([part.images for part in parts]),
    )


def write(path: Path, prepared: Prepared) -> None:
    """Write embedded references as one safetensors file."""
    embedded = {name: getattr(prepared.embedded, name) for name in _TENSORS[:4]}
    tensors = {**embedded, "sentences": prepared.sentences, "images": prepared.images}
    tensor_files.write(
        path, tensors, {"prescore_embedded_references": _FORMAT, "model": prepared.model}
    )


def read(path: Path) -> Prepared:
    """Read a file that `write` made. Raises MetricFailed if the file is something else."""
    try:
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("prescore_embedded_references") != _FORMAT:
                raise MetricFailed(f"expected embedded references of format 1 in {path.name}")
            tensors = {name: file.get_tensor(name) for name in _TENSORS}
    except SafetensorError as error:
        raise MetricFailed(f"{path.name} holds no embedded references: {error}") from None
    embedded = Embedded(*(tensors[name] for name in _TENSORS[:4]))
    return Prepared(metadata["model"], embedded, tensors["sentences"], tensors["images"])


@dataclass(frozen=True)
class _Side:
    """Captions or references. Sentence i has the tokens from bounds[i] to bounds[i+1]; its weights
    have the sum 1, or 0 if no token of it has a weight.
    """

    vectors: NDArray[np.float32]
    weights: Floats
    bounds: Sequence[int]

    @classmethod
    def of(cls, embedded: Embedded, weight_of: Floats) -> "_Side":
        weights = weight_of[embedded.tokens]
        sentence_of = np.repeat(np.arange(len(embedded.cut)), np.diff(embedded.offsets))
        totals = np.bincount(sentence_of, weights, minlength=len(embedded.cut))
        weights = weights / np.where(totals > 0, totals, 1)[sentence_of]
        return cls(embedded.vectors, weights, embedded.offsets.tolist())

    def __getitem__(self, sentence: int) -> slice:
        return slice(self.bounds[sentence], self.bounds[sentence + 1])


def _beside(
    captions: _Side, caption: int, references: _Side, people: Sequence[int]
) -> Beside | None:
    mine = captions[caption]
    parts = [part for part in map(references.__getitem__, people) if part.start < part.stop]
    if mine.start == mine.stop or not parts:
        return None
    theirs = np.concatenate([references.vectors[part] for part in parts])
    return Beside(
        alike=captions.vectors[mine] @ theirs.T,
        own=captions.weights[mine],
        theirs=np.concatenate([references.weights[part] for part in parts]),
        starts=np.array([0, *accumulate(part.stop - part.start for part in parts)])[:-1],
    )


def _best(beside: Beside | None) -> list[float]:
    """The highest precision, recall and F1 over the references."""
    if beside is None:
        return [0.0, 0.0, 0.0]
    precision, recall, filled = beside.precisions, beside.recalls, beside.filled
    both = precision + recall
    f1 = np.divide(2 * precision * recall, both, out=np.zeros_like(both), where=both != 0)
    return [float(np.where(filled, x, 0.0).max()) for x in (precision, recall, f1)]


def _weights(references: Prepared, encoder: TextEncoder, *, idf: bool) -> Floats:
    """A weight for each token that the tokeniser knows."""
    size = max(encoder.tokenizer.get_vocab().values()) + 1
    weights = np.ones(size)
    if idf:
        embedded, total = references.embedded, len(references.sentences)
        often = np.bincount(references.sentences, minlength=len(embedded.cut))
        sentence_of = np.repeat(np.arange(len(embedded.cut)), np.diff(embedded.offsets))
        pairs = np.unique(sentence_of * size + embedded.tokens.astype(np.int64))
        found = np.bincount(pairs % size, often[pairs // size], minlength=size)
        weights = np.log((total + 1) / (found + 1))
    weights[list(encoder.special)] = 0
    return weights
