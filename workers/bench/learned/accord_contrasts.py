"""Contrasts: wrong captions for right ones, made of captions alone, from which `accord` learns.

Every kind changes a person's caption in one respect, or takes another image's. Words are sorted by
small lists and by how the corpus uses them, so that a word takes the place of one like it.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy import sparse

from workers.metrics.accord.stems import ENGLISH, STEMS

_TRIES = 30  # to draw a word that no reference holds; most draws do
_NEAREST = 30  # images among which a near one is drawn
_COMMON = 20  # times that a word must be in the corpus to take another's place
_NUMBERS = "one two three four five six seven several many"
_COLOURS = (
    "red blue green yellow black white brown orange pink purple gray grey tan silver gold golden"
)
_RELATIONS = (
    "on under in behind beside near above below with without inside outside over across "
    "through around against from into between down up off along"
)
_DETERMINERS = frozenset(["a", "an", "the", "two", "three", "some", "his", "her", "their", "its"])
_CLOSED = frozenset((_RELATIONS + " and or of at to by is are as while that which who . ,").split())
EXCHANGED = ("noun", "number", "colour", "verb", "relation")
ANY_WORD = "word"  # the kind of words in languages whose lists are not here
_SMALL = 30  # words that are the most common ones: in any language they have little meaning


@dataclass(frozen=True)
class Contrast:
    """A right caption (tokens), a wrong one of a kind, and the image's other captions."""

    kind: str
    right: str
    wrong: str
    references: tuple[str, ...]


@dataclass(frozen=True)
class ContrastLexicon:
    """The kind of each common word; by kind, words and counts. `stem` tells forms of a word."""

    kinds: Mapping[str, str]
    words: Mapping[str, tuple[Sequence[str], Sequence[int]]]
    stem: Callable[[str], str]

    @classmethod
    def of(cls, captions: Sequence[str], stems: str = ENGLISH) -> "ContrastLexicon":
        kinds = _kinds(captions) if stems == ENGLISH else _any_words(captions)
        counts = Counter(word for said in captions for word in said.split() if word in kinds)
        words: dict[str, tuple[list[str], list[int]]] = defaultdict(lambda: ([], []))
        for word, count in sorted(counts.items()):
            words[kinds[word]][0].append(word)
            words[kinds[word]][1].append(count)
        return cls(kinds, dict(words), STEMS[stems])

    def other(self, word: str, held: frozenset[str], rng: random.Random) -> str | None:
        """Another word of the same kind whose stem is not among those held."""
        drawn = rng.choices(*self.words[self.kinds[word]], k=_TRIES)
        return next((each for each in drawn if self.stem(each) not in held), None)


def _kinds(captions: Sequence[str]) -> dict[str, str]:
    counts: Counter[str] = Counter()
    named: Counter[str] = Counter()  # after a determiner, and before a closed word or the end
    for said in captions:
        tokens = ["", *said.split(), "."]
        counts.update(tokens[1:-1])
        for before, word, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
            named[word] += before in _DETERMINERS and after in _CLOSED
    common = [word for word, count in counts.items() if count >= _COMMON and word.isalpha()]
    found = {w: "verb" for w in common if w.endswith("ing") and named[w] < 0.1 * counts[w]}
    found |= {w: "noun" for w in common if named[w] > 0.25 * counts[w] and w not in found}
    for kind, listed in (("number", _NUMBERS), ("colour", _COLOURS), ("relation", _RELATIONS)):
        found |= {word: kind for word in listed.split() if counts[word]}
    return found


def _any_words(captions: Sequence[str]) -> dict[str, str]:
    """Common words but the most common ones, all of one kind."""
    counts = Counter(word for said in captions for word in said.split() if word.isalpha())
    common = [word for word, count in counts.most_common()[_SMALL:] if count >= _COMMON]
    return dict.fromkeys(common, ANY_WORD)


@dataclass(frozen=True, eq=False)
class ContrastCorpus:
    """Images' captions as tokens, and for each image the nearest others, the nearest first."""

    images: Sequence[Sequence[str]]
    lexicon: ContrastLexicon
    nearest: np.ndarray

    @classmethod
    def of(cls, images: Sequence[Sequence[str]], stems: str = ENGLISH) -> "ContrastCorpus":
        flat = [said for image in images for said in image]
        return cls(images, ContrastLexicon.of(flat, stems), _nearest(images, STEMS[stems]))

    def stem(self, word: str) -> str:
        return self.lexicon.stem(word)


def _nearest(images: Sequence[Sequence[str]], stem: Callable[[str], str]) -> np.ndarray:
    """Find the nearest images by the cosine of tf-idf vectors of an image's joined captions."""
    numbers: dict[str, int] = {}
    rows, columns = [], []
    for row, image in enumerate(images):
        for word in " ".join(image).split():
            rows.append(row)
            columns.append(numbers.setdefault(stem(word), len(numbers)))
    shape = len(images), len(numbers)
    counts = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape)
    held = np.bincount(counts.indices, minlength=shape[1])
    vectors = counts @ sparse.diags(np.log(len(images) / held))
    norms = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1))).ravel()
    vectors = sparse.csr_matrix(sparse.diags(1 / np.maximum(norms, 1e-12)) @ vectors)
    many = min(_NEAREST, len(images) - 1)
    found = np.empty((len(images), many), np.int64)
    for start in range(0, len(images), 500):
        close = (vectors[start : start + 500] @ vectors.T).toarray()
        close[np.arange(len(close)), start + np.arange(len(close))] = -1
        found[start : start + 500] = np.argsort(-close, axis=1, kind="stable")[:, :many]
    return found


@dataclass(frozen=True, eq=False)
class _RightCaption:
    """A right caption of the image at a place in the corpus."""

    right: str
    place: int
    corpus: ContrastCorpus
    rng: random.Random


def make_contrasts(corpus: ContrastCorpus, seed: int) -> Iterator[Contrast]:
    """A contrast of every kind for one caption of each image, drawn at random."""
    rng = random.Random(seed)  # noqa: S311  no secret
    for place, image in enumerate(corpus.images):
        at = rng.choice(range(len(image)))
        others = tuple(said for n, said in enumerate(image) if n != at)
        if not others or not image[at].split():
            continue
        given = _RightCaption(image[at], place, corpus, rng)
        for kind, make_wrong in (KINDS | OF_ANY_LANGUAGE).items():
            for wrong in make_wrong(given):
                if wrong != given.right:
                    yield Contrast(kind, given.right, wrong, others)


def draw_contrasts(found: Sequence[Contrast], most: int, seed: int) -> list[Contrast]:
    """At most so many contrasts of each kind."""
    rng = random.Random(seed)  # noqa: S311  no secret
    by_kind: dict[str, list[Contrast]] = defaultdict(list)
    for each in found:
        by_kind[each.kind].append(each)
    return [each for kind in by_kind.values() for each in rng.sample(kind, min(most, len(kind)))]


def _near(given: _RightCaption) -> Iterator[str]:
    corpus = given.corpus
    yield given.rng.choice(corpus.images[corpus.nearest[given.place, 0]])


def _further(given: _RightCaption) -> Iterator[str]:
    corpus = given.corpus
    other = given.rng.choice(corpus.nearest[given.place].tolist())
    yield given.rng.choice(corpus.images[other])


def _exchanged(kind: str, given: _RightCaption) -> Iterator[str]:
    corpus, words = given.corpus, given.right.split()
    fitting = [at for at, word in enumerate(words) if corpus.lexicon.kinds.get(word) == kind]
    if fitting:
        at = given.rng.choice(fitting)
        held = frozenset(
            corpus.stem(w) for said in corpus.images[given.place] for w in said.split()
        )
        other = corpus.lexicon.other(words[at], held, given.rng)
        if other is not None:
            yield " ".join([*words[:at], other, *words[at + 1 :]])


def _swapped(given: _RightCaption) -> Iterator[str]:
    """Two nouns change places; where nouns are not told from other words, two of these do."""
    words, kinds = given.right.split(), given.corpus.lexicon.kinds
    nouns = [at for at, word in enumerate(words) if kinds.get(word) in ("noun", ANY_WORD)]
    if len({words[at] for at in nouns}) > 1:
        one, two = sorted(given.rng.sample(nouns, 2))
        words[one], words[two] = words[two], words[one]
        yield " ".join(words)


def _truncated(given: _RightCaption) -> Iterator[str]:
    words = given.right.split()
    if len(words) > 3:
        yield " ".join(words[: given.rng.randint(2, 2 * len(words) // 3)])


def _repeated(given: _RightCaption) -> Iterator[str]:
    """Two or three words are said again and again, in the place of the rest."""
    words = given.right.split()
    if len(words) > 5:
        size = given.rng.choice((2, 3))
        start = given.rng.randrange(len(words) - size)
        part = words[start : start + size]
        yield " ".join((words[:start] + part * len(words))[: max(len(words), start + 2 * size)])


def _shuffled(given: _RightCaption) -> Iterator[str]:
    words = given.right.split()
    yield " ".join(given.rng.sample(words, len(words)))


KINDS: dict[str, Callable[[_RightCaption], Iterator[str]]] = {
    "near": _near,
    "further": _further,
    **{kind: partial(_exchanged, kind) for kind in EXCHANGED},
    "swapped": _swapped,
    "truncated": _truncated,
    "repeated": _repeated,
    "shuffled": _shuffled,
}
OF_ANY_LANGUAGE: dict[str, Callable[[_RightCaption], Iterator[str]]] = {
    ANY_WORD: partial(_exchanged, ANY_WORD)
}
