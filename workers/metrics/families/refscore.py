"""RefScore without pictures: how close in meaning a caption is to the closest of its references.

The score of a caption is the highest cosine of its sentence vector with those of the references. A
text without words has the cosine 0 with every other. Captions and references are taken as people
wrote them, because models know sentences, not tokens.
"""

from dataclasses import replace

import numpy as np

from service.contract.errors import MetricFailed
from workers.metrics.family import FamilyMeasures, ScoringInput
from workers.metrics.references import describe_counts
from workers.metrics.vectors import sentences
from workers.metrics.vectors.sentences import list_distinct
from workers.metrics.vectors.text_encoder import TextEncoder

_BLOCK = 500  # captions between two reports of progress


def complete(task: ScoringInput) -> ScoringInput:
    """The task with the vectors of the references, if no task has computed them before."""
    encoder = _encoder(task)
    if "sentences" in task.tools:
        return task
    prepared = sentences.prepare(task.people, encoder, progress=task.progress)
    return replace(task, tools={**task.tools, "sentences": prepared})


def measure(task: ScoringInput) -> FamilyMeasures:
    """The highest cosine of each caption, in float64 of vectors in float32."""
    encoder, references = _encoder(task), task.tools["sentences"]
    if references.model != encoder.name:
        raise MetricFailed("expected references embedded by the same layer of the same model")
    texts, places = list_distinct(task.captions)
    vectors = sentences.pool_sentences(texts, encoder, progress=task.progress).astype(np.float64)
    scores = np.empty(len(task.captions))
    for index, row in enumerate(task.rows.tolist()):
        if index % _BLOCK == 0:
            task.progress(len(texts), len(texts))
        people = references.sentences[references.images[row] : references.images[row + 1]]
        scores[index] = (references.vectors[people] @ vectors[places[index]]).max()
    return FamilyMeasures.of_scores("refscore", scores)


def against(task: ScoringInput) -> str:
    """The part of a signature that says how many references there are, and what a token is."""
    if task.tokenizer:
        return task.references.signature
    return f"{describe_counts(task.tools['sentences'].images)}|tok:model"


def recipe(task: ScoringInput) -> str:
    digest, layer = task.tools["sentences"].model.split("/")
    return f"model:{digest[:12]}|layer:{layer}|pool:mean"


def _encoder(task: ScoringInput) -> TextEncoder:
    complaint = "RefScore needs a model, and was given none"
    encoder: TextEncoder = task.require_tool("encoder", complaint)
    return encoder
