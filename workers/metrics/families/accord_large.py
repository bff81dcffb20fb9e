"""The metric `accord_large`: the sum of `accord`, and what all-MiniLM-L6-v2 says of a caption
beside its references, weighted as the features of `accord` are (`workers/metrics/accord`).

The weights hold for the vectors of that very model. It reads captions and references as they were
written, or, where a task has tokens alone, these joined by blanks. What it says counts until a
caption is as near as people's captions are to each other; the nearer a caption is, the more its
words decide, whose sum counts half where the encoder finds nothing alike.
"""

from collections import Counter
from itertools import pairwise

import numpy as np

from service.contract.errors import MetricUnavailable
from workers.metrics.accord import caption_features, large_model
from workers.metrics.accord.language import AccordLanguage, WordPair
from workers.metrics.accord.model import AccordWeights
from workers.metrics.families import bertscore
from workers.metrics.families.bertscore import EmbeddedReferences, TokenCosines
from workers.metrics.family import FamilyMeasures, Floats, ScoringInput
from workers.metrics.ngrams import Ints
from workers.metrics.vectors.sentences import list_distinct
from workers.metrics.vectors.text_encoder import TextEncoder, TokenVectors

NAMES = (
    "accord_sum",  # of the features of `accord` by its weights, as a share of the highest sum
    "meant_precision",  # the mean over its words of the cosine to the nearest of any reference
    "meant_recall",  # BERTScore's recall, its mean over references
    "sentence_best",  # the cosine of the sentences' vectors, with the closest reference
    "sentence_mean",  # its mean over references
    "unrepeated",  # of adjacent stems, the share not said more often than in any one reference
)
WEIGHTED = (
    "words",  # `accord_sum`, in full where the encoder finds a caption near, down to half of it
    "precision",  # `meant_precision`, as a share of what is enough, as the next two
    "recall",  # `meant_recall`
    "sentence",  # `sentence_best`
)
_MEANT = slice(1, 5)  # of NAMES, what the encoder says
_REPEATED = 0.8  # of adjacent stems unrepeated; from there on a caption is none the worse


def complete(task: ScoringInput) -> ScoringInput:
    """The task with the references embedded, if no task has done so before."""
    complaint = "accord_large needs all-MiniLM-L6-v2, and was given no model"
    encoder: TextEncoder = task.require_tool("encoder", complaint)
    expected = large_model.load_shipped_large_model().encoder
    if encoder.name != expected:
        raise MetricUnavailable(
            f"expected all-MiniLM-L6-v2 ({_shown(expected)}), for whose vectors alone the weights "
            f"of accord_large hold, found another model ({_shown(encoder.name)}); "
            "`prescore assets add minilm` brings it"
        )
    return bertscore.complete(task)


def measure(task: ScoringInput) -> FamilyMeasures:
    found = large_model.load_shipped_large_model()
    scores = found(weigh_features(measure_features(task, found.small), found.near, found.enough))
    return FamilyMeasures.of_scores("accord_large", scores)


def measure_features(task: ScoringInput, small: AccordWeights) -> Floats:
    """The features (captions, NAMES) of a completed task's captions, from 0 to 1."""
    sums = (
        caption_features.measure_features(task, small.language)
        @ small.weights
        / small.weights.sum()
    )
    values = np.column_stack([sums, _meant(task), _unrepeated(task, small.language)])
    found: Floats = np.clip(values, 0, 1)
    return found


def weigh_features(values: Floats, near: Floats, enough: Floats) -> Floats:
    """Weigh features: (captions, WEIGHTED), from 0 to 1; none falls as one rises. At
    `near`, of each that the encoder says, words count in full; at `enough`, it counts in full.
    """
    sums, meant = values[:, 0], values[:, _MEANT]
    unrepeated = np.minimum(values[:, -1] / _REPEATED, 1)
    nearness = np.minimum(meant / near, 1).mean(axis=1)
    shares = np.minimum(meant[:, : len(enough)] / enough, 1)
    shares[:, 0] *= unrepeated  # a word said again finds the same word
    found: Floats = np.column_stack([sums * unrepeated * (1 + nearness) / 2, shares])
    return found


def recipe(task: ScoringInput) -> str:
    """`texts` says whether the encoder read captions as they were written, or their tokens."""
    found = large_model.load_shipped_large_model()
    read = "written" if "texts" in task.tools else "tokens"
    return f"model:{found.digest[:12]}|encoder:{found.encoder[:12]}|texts:{read}"


def _shown(encoder: str) -> str:
    digest, layer = encoder.split("/")
    return f"SHA-256 of its files {digest:.12}…, layer {layer}"


def _unrepeated(task: ScoringInput, language: AccordLanguage) -> Floats:
    """Share of word pairs that are not repeated; the first one is free. Without words it is 0."""
    known: dict[tuple[str, ...], Counter[WordPair]] = {}
    found = np.zeros(len(task.captions))
    for place in task.places():
        people = tuple(task.references_of(place))
        if people not in known:
            known[people] = _most(people, language)
        pairs = _pairs(task.captions[place], language)
        again = sum(max(0, n - max(1, known[people][pair])) for pair, n in pairs.items())
        if task.captions[place].split():
            found[place] = 1 - again / max(1, pairs.total())
    return found


def _most(people: tuple[str, ...], language: AccordLanguage) -> Counter[WordPair]:
    """Count each pair as often as the reference has it that has it the most often."""
    most: Counter[WordPair] = Counter()
    for tokens in people:
        most |= _pairs(tokens, language)
    return most


def _pairs(tokens: str, language: AccordLanguage) -> Counter[WordPair]:
    return Counter(pairwise([language.stem(word) for word in tokens.split()]))


def _meant(task: ScoringInput) -> Floats:
    encoder: TextEncoder = task.tools["encoder"]
    references: EmbeddedReferences = task.tools["embedded"]
    texts, places = list_distinct(task.texts)
    embedded = encoder.embed(texts, progress=task.progress)
    each = bertscore.compare_tokens(embedded, places, task)
    many = np.diff(references.images)[task.rows]
    words = [_words(beside, count) for beside, count in zip(each, many.tolist(), strict=True)]
    ours, theirs = (_sentences(each, encoder) for each in (embedded, references.embedded))
    sentences = _cosines(ours[places], task.rows, theirs, references)
    return np.concatenate([words, sentences], axis=1)


def _words(beside: TokenCosines | None, references: int) -> tuple[float, float]:
    """Precision and recall; references without words, and negative means of cosines, are 0."""
    if beside is None or not beside.filled.any():
        return 0.0, 0.0
    recalls = np.where(beside.filled, np.maximum(beside.recalls, 0), 0)
    nearest = beside.alike[:, beside.theirs > 0].max(axis=1)
    return float(beside.own @ nearest), float(recalls.sum() / references)


def _sentences(embedded: TokenVectors, encoder: TextEncoder) -> Floats:
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


def _cosines(ours: Floats, rows: Ints, theirs: Floats, references: EmbeddedReferences) -> Floats:
    """The highest and the mean cosine (captions, 2) with the references."""
    found = np.empty((len(rows), 2))
    for index, row in enumerate(rows.tolist()):
        people = references.sentences[references.images[row] : references.images[row + 1]]
        cosines = theirs[people] @ ours[index]
        found[index] = cosines.max(), cosines.mean()
    return found
