"""BERTScore (Zhang et al. 2020): every token is matched to the most similar one of the other side.

Precision is the mean, over a caption's tokens, of their cosine to the most similar token of a
reference; recall is the same from the reference to the caption; F1 is their harmonic mean. The
reference with the highest F1 counts. As in the published package, a sentence's two special tokens
have no weight but may be matched, and an empty side has F1 0 (where the package fails now).

Sentences are taken as they are, because models know people's own captions, not tokens.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import MetricFailed
from workers import tensor_files
from workers.metrics.family import FamilyMeasures, Floats, ScoringInput, Statistics
from workers.metrics.marked_files import Tensors, read_marked_file
from workers.metrics.ngrams import Ints
from workers.metrics.references import describe_counts
from workers.metrics.vectors.sentences import (
    collect_references,
    join_offsets,
    join_places,
    list_distinct,
)
from workers.metrics.vectors.text_encoder import TextEncoder, TokenVectors
from workers.progress import Progress, ignore_progress

_MARK, _FORMAT = "prescore_embedded_references", "1"
_EMBEDDED = ("vectors", "tokens", "offsets", "cut")
_BLOCK = 500  # captions between two reports of progress


@dataclass(frozen=True)
class EmbeddedReferences:
    """References of a dataset version, embedded once: `embedded` holds every sentence once.

    sentences (C) i64: the place in `embedded` of each reference;  images (N+1) i64: image i has the
    references from images[i] to images[i+1] in `sentences`
    """

    model: str
    embedded: TokenVectors
    sentences: NDArray[np.int64]
    images: NDArray[np.int64]

    @property
    def cut(self) -> int:
        """Number of references too long for the model, which saw only their beginning."""
        return int(self.embedded.cut[self.sentences].sum())


def prepare(
    references: Sequence[Sequence[str]],
    encoder: TextEncoder,
    *,
    progress: Progress = ignore_progress,
) -> EmbeddedReferences:
    """Embed the references. Raises MetricFailed if an image has no reference."""
    texts, sentences, images = collect_references(references)
    return EmbeddedReferences(
        encoder.name, encoder.embed(texts, progress=progress), sentences, images
    )


def measure(task: ScoringInput) -> FamilyMeasures:
    """Score the captions of a completed task. Its own parameters: `idf`, the fewer of all
    references have a token, the more it weighs; `baseline`, the F1 of unrelated sentences, which
    becomes 0.

    Statistics: precision and recall (each the best of all references, without baseline), and
    `cut`, which is 1 if a caption was too long for the model and only its beginning was scored.
    """
    encoder: TextEncoder = task.tools["encoder"]
    idf, baseline = task.own.get("idf", False), task.own.get("baseline")
    texts, places = list_distinct(task.captions)
    embedded = encoder.embed(texts, progress=task.progress)
    found = np.array([_best(beside) for beside in compare_tokens(embedded, places, task, idf=idf)])
    scores = found[:, 2] if baseline is None else (found[:, 2] - baseline) / (1 - baseline)
    cut = embedded.cut[places].astype(np.float64)
    return FamilyMeasures(
        {"bertscore": scores},
        {"bertscore": scores, "precision": found[:, 0], "recall": found[:, 1], "cut": cut},
    )


@dataclass(frozen=True)
class TokenCosines:
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
        """True if the caption and a reference have tokens with a weight."""
        filled: NDArray[np.bool_] = np.add.reduceat(self.theirs, self.starts) * self.own.sum() > 0
        return filled


def compare_tokens(
    captions: TokenVectors, places: Ints, task: ScoringInput, *, idf: bool = False
) -> Iterator[TokenCosines | None]:
    """Compare a task's captions, sentences places[i], with references; None: a side is empty."""
    references: EmbeddedReferences = task.tools["embedded"]
    encoder: TextEncoder = task.tools["encoder"]
    if references.model != encoder.name:
        raise MetricFailed("expected references embedded by the same layer of the same model")
    weights = _weights(references, encoder, idf=idf)
    mine, theirs = (
        _WeightedTokens.of(captions, weights),
        _WeightedTokens.of(references.embedded, weights),
    )
    for index, row in enumerate(task.rows.tolist()):
        if index % _BLOCK == 0:
            task.progress(len(captions.cut), len(captions.cut))
        people = references.sentences[references.images[row] : references.images[row + 1]]
        yield _beside(mine, places[index], theirs, people.tolist())


def corpus(statistics: Statistics) -> dict[str, float]:
    return {"bertscore": float(np.mean(statistics["bertscore"]))}


def against(task: ScoringInput) -> str:
    """The part of a signature that says how many references there are, and what a token is."""
    if task.tokenizer:
        return task.references.signature
    return f"{describe_counts(task.tools['embedded'].images)}|tok:model"


def recipe(task: ScoringInput) -> str:
    references: EmbeddedReferences = task.tools["embedded"]
    baseline = task.own.get("baseline")
    digest, layer = references.model.split("/")
    weights = f"refs(n={len(references.sentences)})" if task.own.get("idf") else "no"
    zero = "no" if baseline is None else f"{baseline:.6g}"
    return f"model:{digest[:12]}|layer:{layer}|idf:{weights}|baseline:{zero}"


def complete(task: ScoringInput) -> ScoringInput:
    """The task with the references embedded, if no task has done so before."""
    complaint = "BERTScore needs a model, and was given none"
    encoder: TextEncoder = task.require_tool("encoder", complaint)
    if "embedded" in task.tools:
        return task
    embedded = prepare(task.people, encoder, progress=task.progress)
    return replace(task, tools={**task.tools, "embedded": embedded})


def join(parts: Sequence[EmbeddedReferences]) -> EmbeddedReferences:
    """Join the references of several parts, with their images one after another."""
    embedded = [part.embedded for part in parts]
    return EmbeddedReferences(
        model=parts[0].model,
        embedded=TokenVectors(
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


def write(path: Path, prepared: EmbeddedReferences) -> None:
    """Write embedded references as one safetensors file."""
    embedded = {name: getattr(prepared.embedded, name) for name in _EMBEDDED}
    tensors = {**embedded, "sentences": prepared.sentences, "images": prepared.images}
    tensor_files.write_tensors(path, tensors, {_MARK: _FORMAT, "model": prepared.model})


def read(path: Path) -> EmbeddedReferences:
    """Read a file that `write` made. Raises MetricFailed if the file is something else."""

    def restore_references(metadata: Mapping[str, str], tensors: Tensors) -> EmbeddedReferences:
        embedded = TokenVectors(*(tensors.pop(name) for name in _EMBEDDED))
        return EmbeddedReferences(metadata["model"], embedded, **tensors)

    return read_marked_file(path, _MARK, _FORMAT, "embedded references", restore_references)


@dataclass(frozen=True)
class _WeightedTokens:
    """Sentence i has the tokens bounds[i] to bounds[i+1]; its weights have the sum 1, or 0."""

    vectors: NDArray[np.float32]
    weights: Floats
    bounds: Sequence[int]

    @classmethod
    def of(cls, embedded: TokenVectors, weight_of: Floats) -> "_WeightedTokens":
        weights = weight_of[embedded.tokens]
        sentence_of = np.repeat(np.arange(len(embedded.cut)), np.diff(embedded.offsets))
        totals = np.bincount(sentence_of, weights, minlength=len(embedded.cut))
        weights = weights / np.where(totals > 0, totals, 1)[sentence_of]
        return cls(embedded.vectors, weights, embedded.offsets.tolist())

    def __getitem__(self, sentence: int) -> slice:
        return slice(self.bounds[sentence], self.bounds[sentence + 1])


def _beside(
    captions: _WeightedTokens, caption: int, references: _WeightedTokens, people: Sequence[int]
) -> TokenCosines | None:
    mine = captions[caption]
    parts = [part for part in map(references.__getitem__, people) if part.start < part.stop]
    if mine.start == mine.stop or not parts:
        return None
    theirs = np.concatenate([references.vectors[part] for part in parts])
    return TokenCosines(
        alike=captions.vectors[mine] @ theirs.T,
        own=captions.weights[mine],
        theirs=np.concatenate([references.weights[part] for part in parts]),
        starts=np.array([0, *accumulate(part.stop - part.start for part in parts)])[:-1],
    )


def _best(beside: TokenCosines | None) -> list[float]:
    """The highest precision, recall and F1 over the references."""
    if beside is None:
        return [0.0, 0.0, 0.0]
    precision, recall, filled = beside.precisions, beside.recalls, beside.filled
    both = precision + recall
    f1 = np.divide(2 * precision * recall, both, out=np.zeros_like(both), where=both != 0)
    return [float(np.where(filled, x, 0.0).max()) for x in (precision, recall, f1)]


def _weights(references: EmbeddedReferences, encoder: TextEncoder, *, idf: bool) -> Floats:
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
