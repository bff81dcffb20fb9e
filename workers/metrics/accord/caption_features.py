"""Features of `accord`: how far a caption agrees with its references, from 0 to 1."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from service.contract.metrics.families import FAMILIES
from workers.metrics.accord.language import AccordLanguage, WordPair, pair_words
from workers.metrics.family import Floats, ScoringInput
from workers.metrics.ngrams import Ints

_NONE = -2  # no word: before each reference in `lined`


@dataclass(frozen=True, eq=False)
class CaptionWords:
    """One caption. `words` are its stems."""

    tokens: str
    language: AccordLanguage

    @cached_property
    def words(self) -> Sequence[str]:
        return [self.language.stem(word) for word in self.tokens.split()]

    @cached_property
    def counts(self) -> Mapping[str, int]:
        return Counter(self.words)

    @cached_property
    def weights(self) -> Floats:
        return np.array([self.language.weigh(word) for word in self.words])

    @cached_property
    def mass(self) -> float:
        return math.fsum(self.weights.tolist())

    @cached_property
    def vectors(self) -> Floats:
        return self.language.vectors_of(self.words)

    @cached_property
    def written(self) -> Sequence[WordPair]:
        """Adjacent words as they are written."""
        return pair_words(self.tokens)


@dataclass(frozen=True, eq=False)
class ReferenceWords:
    """The references of an image, of which there is at least one."""

    said: Sequence[CaptionWords]

    @cached_property
    def agreed(self) -> Mapping[str, float]:
        """Weight of each word, times its references after the first one; the plain weights of all
        words where no word is in two references.
        """
        weigh = self.said[0].language.weigh
        holders = Counter(word for each in self.said for word in each.counts)
        several = {word: (n - 1) * weigh(word) for word, n in holders.items() if n > 1}
        return several if sum(several.values()) > 0 else {word: weigh(word) for word in holders}

    @cached_property
    def written(self) -> frozenset[WordPair]:
        return frozenset(pair for each in self.said for pair in each.written)

    @cached_property
    def beside(self) -> "AlignedReferences | None":
        return AlignedReferences.of(self)


@dataclass(frozen=True, eq=False)
class AlignedReferences:
    """The words of all references with any, side by side: the numbers of words, where each
    reference begins, weights, vectors, and what each adds to the mass of agreed words; how much
    each reference weighs; and `lined`, the numbers of words, with a place without one before each
    reference.
    """

    numbers: Mapping[str, int]
    words: Ints
    begins: Ints
    weights: Floats
    vectors: Floats
    agreed: Floats
    masses: Floats
    lined: Ints

    @classmethod
    def of(cls, image: ReferenceWords) -> "AlignedReferences | None":
        filled = [each for each in image.said if each.words]
        if not filled:
            return None
        flat = [word for each in filled for word in each.words]
        numbers = {word: number for number, word in enumerate(dict.fromkeys(flat))}
        sizes = np.array([len(each.words) for each in filled])
        often = Counter(flat)
        words = np.array([numbers[word] for word in flat], np.int64)
        begins = np.cumsum(sizes) - sizes
        return cls(
            numbers=numbers,
            words=words,
            begins=begins,
            weights=np.concatenate([each.weights for each in filled]),
            vectors=np.concatenate([each.vectors for each in filled]),
            agreed=np.array([image.agreed.get(word, 0.0) / often[word] for word in flat]),
            masses=np.array([each.mass for each in filled]),
            lined=np.insert(words, begins, _NONE),
        )


NAMES = (
    "best_recall",  # the share of a reference that it says, of the reference of which it says most
    "soft_agreed_recall",  # the share of what references agree on, like words counting in part
    "soft_best_recall",  # as `best_recall`, like words counting in part
    "soft_mean_f",  # the mean over references of the F-measure, like words counting in part
    "in_order",  # the mean F-measure of the longest common subsequence, where all words count 1
    "usual",  # 1 / (1 + adjacent words that neither the language nor a reference has)
    "ended",  # whether the last word is a content word
    "cider",  # CIDEr-D / 10 with the model's document frequencies
)
_CIDER = "cider_d"
_LIKE = 0.5  # the cosine from which words are alike at all
HEAVY = 1.0  # the weight from which a word is a content word
_AT_ONCE = 256  # words of a caption: 10,000 beside 50,000 would need 4 GB
_UNEQUAL = 0.99  # of the similarity of two equal words, the most that unequal ones have


def measure_features(task: ScoringInput, language: AccordLanguage) -> Floats:
    """The features (captions, NAMES) of a task's captions."""
    given = replace(language.frequencies, tokenizer=task.references.tokenizer)
    scores = task.others(_CIDER, replace(task, idf=given)).captions[_CIDER]
    cider = np.clip(scores / FAMILIES[_CIDER].metrics[0].highest, 0, 1)
    odd = language.odd(task.captions)

    @cache
    def analyse_caption(tokens: str) -> CaptionWords:
        return CaptionWords(tokens, language)

    @cache
    def analyse_references(people: tuple[str, ...]) -> ReferenceWords:
        return ReferenceWords([analyse_caption(tokens) for tokens in people])

    found = np.zeros((len(task.captions), len(NAMES)))
    for place in task.places():
        image = analyse_references(tuple(task.references_of(place)))
        caption = analyse_caption(task.captions[place])
        found[place] = _features(caption, image, odd, float(cider[place]))
    return found


def _features(
    caption: CaptionWords, image: ReferenceWords, odd: frozenset[WordPair], cider: float
) -> Floats:
    weigh = caption.language.weigh
    beside = image.beside
    if beside is None or not any(weigh(word) for word in caption.counts if word in beside.numbers):
        return np.zeros(len(NAMES))
    strange = sum(pair in odd and pair not in image.written for pair in caption.written)
    own = np.array([beside.numbers.get(word, -1) for word in caption.words])
    values = (
        max(_recall(caption, each) for each in image.said),
        *_soft(caption, own, beside, len(image.said)),
        _in_order(own, beside) / len(image.said),
        1 / (1 + strange),
        float(weigh(caption.words[-1]) > HEAVY),
        cider,
    )
    return np.clip(values, 0, 1)


def _recall(caption: CaptionWords, reference: CaptionWords) -> float:
    """Recall of a reference's words in the caption, by weight."""
    own, weigh = caption.counts, caption.language.weigh
    common = [(word, n) for word, n in reference.counts.items() if word in own]
    met = sum(min(n, own[word]) * weigh(word) for word, n in common)
    return met / reference.mass if met else 0.0


def _soft(
    caption: CaptionWords, own: Ints, beside: AlignedReferences, many: int
) -> tuple[float, float, float]:
    """Agreed recall, best recall and mean F-measure by weight, like words counting in part."""
    best = np.empty((len(own), len(beside.begins)))  # of each word, by reference
    met = np.zeros(len(beside.words))
    for start in range(0, len(own), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        alike = _alike(caption.vectors[some], own[some], beside)
        best[some] = np.maximum.reduceat(alike, beside.begins, axis=1)
        met = np.maximum(met, alike.max(axis=0))
    precisions = caption.weights @ best / caption.mass
    recalls = np.add.reduceat(met * beside.weights, beside.begins)
    recalls /= np.maximum(beside.masses, 1e-12)
    together = precisions + recalls
    f_measures = 2 * precisions * recalls / np.where(together > 0, together, 1)
    return (
        float(met @ beside.agreed / beside.agreed.sum()),
        float(recalls.max()),
        float(f_measures.sum() / many),
    )


def _alike(vectors: Floats, own: Ints, beside: AlignedReferences) -> Floats:
    """Similarity of words (rows) to those of the references, from 0 to 1."""
    cosines = vectors @ beside.vectors.T
    alike: Floats = np.maximum(_UNEQUAL * cosines - _LIKE, 0) / (1 - _LIKE)
    alike[own[:, None] == beside.words] = 1
    return alike


def _in_order(own: Ints, beside: AlignedReferences) -> float:
    """The sum over references of the F-measure of the longest common subsequence. `own` are the
    numbers of the caption's words. All references are one line, on which each begins higher than
    those before it can end.
    """
    levels = np.arange(len(beside.begins)) * (len(own) + 1)
    begins = beside.begins + np.arange(len(beside.begins))
    ends = np.append(begins[1:], len(beside.lined))
    heights = np.repeat(levels, ends - begins)
    for number in own[own >= 0]:
        longer = heights[:-1] + (beside.lined[1:] == number)
        heights[1:] = np.maximum.accumulate(np.maximum(heights[1:], longer))
    common = heights[ends - 1] - levels
    return float((2 * common / (len(own) + ends - begins - 1)).sum())
