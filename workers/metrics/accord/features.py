"""How far a caption agrees with its references, in numbers from 0 to 1 of which more is better.

Words are compared by stem, and weigh as much as their inverse document frequency, which is fixed in
the model: from its own references a single caption would have none. A caption without a word of a
reference that weighs anything has 0 everywhere.
"""

from dataclasses import replace

import numpy as np

from service.contract.metrics.families import FAMILIES
from workers.metrics.accord.language import Language, Pair
from workers.metrics.accord.said import HEAVY, Beside, Image, Said
from workers.metrics.family import Floats, Task
from workers.metrics.ngrams import Ints

NAMES = (
    "precision",  # the share of its words that a reference holds, too
    "agreed_recall",  # the share of what references agree on that it says
    "best_recall",  # of the reference of which it says most
    "mean_f",  # the mean over references of the F-measure, by weight
    "soft_precision",  # these four with like words counting in part, all by weight
    "soft_agreed_recall",
    "soft_best_recall",
    "soft_mean_f",
    "pairs",  # the share of its adjacent words that are adjacent in a reference
    "triples",
    "order",  # of content words that a reference has too, the share in an order that one has
    "unrepeated",  # 1 / (1 + content words said again)
    "usual",  # 1 / (1 + adjacent words that neither the language nor a reference has)
    "ended",  # whether the last word is a content word
    "cider",  # CIDEr-D / 10 with the model's document frequencies
    "cider_root",  # its square root, which tells low values apart
)
_CIDER = "cider_d"
_LIKE = 0.3  # the cosine from which words are alike at all
_AT_ONCE = 256  # words of a caption: 10,000 beside 50,000 would need 4 GB
_UNEQUAL = 0.99  # of the similarity of two equal words, the most that unequal ones have


def measure(task: Task, language: Language) -> Floats:
    """The features (captions, NAMES) of a task's captions."""
    cider = _cider(task, language)
    odd = language.odd(task.captions)
    known: dict[str, Said] = {}

    def said(tokens: str) -> Said:
        found = known.get(tokens)
        if found is None:
            found = known[tokens] = Said(tokens, language)
        return found

    images: dict[tuple[str, ...], Image] = {}
    found = np.zeros((len(task.captions), len(NAMES)))
    for block in task.blocks():
        for place in range(block.start, block.stop):
            people = tuple(task.references_of(place))
            if people not in images:
                images[people] = Image([said(tokens) for tokens in people])
            found[place] = _features(
                said(task.captions[place]), images[people], odd, float(cider[place])
            )
    return found


def _cider(task: Task, language: Language) -> Floats:
    given = replace(language.frequencies, tokenizer=task.references.tokenizer)
    scores = task.others(_CIDER, replace(task, idf=given)).captions[_CIDER]
    return np.clip(scores / FAMILIES[_CIDER].metrics[0].highest, 0, 1)


def _features(caption: Said, image: Image, odd: frozenset[Pair], cider: float) -> Floats:
    weigh = caption.language.weigh
    beside = image.beside
    met = {} if beside is None else {w: n for w, n in caption.counts.items() if w in beside.numbers}
    if beside is None or not any(map(weigh, met)):
        return np.zeros(len(NAMES))
    recalls, f_measures = zip(*(_beside(caption, each) for each in image.said), strict=True)
    agreed = sum(image.agreed.get(word, 0.0) for word in caption.counts)
    repeated = len(caption.heavy) - len({word for _, word in caption.heavy})
    strange = sum(pair in odd and pair not in image.written for pair in caption.written)
    values = (
        sum(met.values()) / len(caption.words),
        agreed / image.agreed_mass,
        max(recalls),
        sum(f_measures) / len(image.said),
        *_soft(caption, beside, len(image.said)),
        _share(caption.pairs, image.pairs, len(caption.words) - 1),
        _share(caption.triples, image.triples, len(caption.words) - 2),
        _order(caption, image),
        1 / (1 + repeated),
        1 / (1 + strange),
        float(weigh(caption.words[-1]) > HEAVY),
        cider,
        cider**0.5,
    )
    return np.clip(values, 0, 1)


def _beside(caption: Said, reference: Said) -> tuple[float, float]:
    """The recall of a reference, and the F-measure, by weight."""
    theirs, weigh = reference.counts, caption.language.weigh
    common = [(word, n) for word, n in caption.counts.items() if word in theirs]
    met = sum(min(n, theirs[word]) * weigh(word) for word, n in common)
    if not met:
        return 0.0, 0.0
    return met / reference.mass, 2 * met / (caption.mass + reference.mass)


def _soft(caption: Said, beside: Beside, many: int) -> tuple[float, float, float, float]:
    """Precision, recall of what is agreed, the best recall, and the mean F-measure over `many`
    references, with like words counting in part.
    """
    own = np.array([beside.numbers.get(word, -1) for word in caption.words])
    best = np.empty((len(own), len(beside.begins)))  # of each word, by reference
    met = np.zeros(len(beside.words))
    for start in range(0, len(own), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        alike = _alike(caption.vectors[some], own[some], beside)
        best[some] = np.maximum.reduceat(alike, beside.begins, axis=1)
        met = np.maximum(met, alike.max(axis=0))
    precisions = caption.weights @ best / caption.mass
    masses = np.add.reduceat(beside.weights, beside.begins)
    recalls = np.add.reduceat(met * beside.weights, beside.begins) / np.maximum(masses, 1e-12)
    together = precisions + recalls
    f_measures = 2 * precisions * recalls / np.where(together > 0, together, 1)
    return (
        float(caption.weights @ best.max(axis=1) / caption.mass),
        float(met @ beside.agreed / beside.agreed.sum()),
        float(recalls.max()),
        float(f_measures.sum() / many),
    )


def _alike(vectors: Floats, own: Ints, beside: Beside) -> Floats:
    """How alike words (rows) are to those of the references, from 0 to 1."""
    cosines = vectors @ beside.vectors.T
    alike: Floats = np.maximum(_UNEQUAL * cosines - _LIKE, 0) / (1 - _LIKE)
    alike[own[:, None] == beside.words] = 1
    return alike


def _share(own: frozenset[tuple[str, ...]], theirs: frozenset[tuple[str, ...]], of: int) -> float:
    return len(own & theirs) / of if of > 0 else 0.0


def _order(caption: Said, image: Image) -> float:
    """One of each is added, so that a caption without such words has no fault."""
    right = len(caption.ordered & image.ordered)
    turned = sum(
        (second, first) in image.ordered
        for first, second in caption.ordered
        if (first, second) not in image.ordered
    )
    return (1 + right) / (1 + right + turned)
