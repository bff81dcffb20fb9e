"""Language statistics of `accord`, learned from the tokens of captions."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.linalg import svds

from workers.metrics import frequencies, references
from workers.metrics.accord.language import AccordLanguage, TokenizedCaptions
from workers.metrics.accord.stems import ENGLISH, STEMS
from workers.metrics.tokens import Tokenizer

_LEAST = 2  # images whose captions hold a word; rarer words are new words
_DIMENSIONS = 64
_WINDOW = 5  # words on each side that are neighbours; the nearer, the more they count
_SMOOTHED = 0.75  # the power of a neighbour's frequency, as word2vec has it


def learn_language(
    images: TokenizedCaptions, tokenizer: Tokenizer, stems: str = ENGLISH
) -> AccordLanguage:
    stem = STEMS[stems]
    counts: Counter[str] = Counter()
    said_of = [[[stem(word) for word in said.split()] for said in image] for image in images]
    for image in said_of:
        counts.update({word for said in image for word in said})
    words = sorted(word for word, count in counts.items() if count >= _LEAST)
    return AccordLanguage(
        words=words,
        images=np.array([counts[word] for word in words], np.uint32),
        vectors=_vectors(said_of, words),
        frequencies=frequencies.collect_frequencies(references.index_tokens(images, tokenizer)),
        stems=stems,
    )


def _vectors(
    images: Sequence[Sequence[Sequence[str]]], words: Sequence[str]
) -> NDArray[np.float16]:
    """Directions of positive pointwise mutual information with neighbours and the same image."""
    places = {word: place for place, word in enumerate(words)}
    near = _neighbours(images, places)
    together = _together(images, places)
    joint = (near + together * (near.sum() / max(together.sum(), 1.0))).tocoo()
    shares = np.asarray(joint.sum(axis=0)).ravel() ** _SMOOTHED
    shares /= shares.sum()
    totals = np.asarray(joint.sum(axis=1)).ravel()
    information = np.log(joint.data / totals[joint.row] / shares[joint.col])
    positive = sparse.csr_matrix((np.maximum(information, 0), (joint.row, joint.col)), joint.shape)
    many = min(_DIMENSIONS, len(words) - 1)
    left, strengths, _ = svds(positive, many, v0=np.ones(len(words)))
    left *= np.sign(left[np.abs(left).argmax(axis=0), np.arange(many)])  # either sign is right
    found = (left * np.sqrt(strengths))[:, ::-1]
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    unit: NDArray[np.float16] = (found / np.maximum(lengths, 1e-9)).astype(np.float16)
    return unit


def _neighbours(
    images: Sequence[Sequence[Sequence[str]]], places: Mapping[str, int]
) -> sparse.csr_matrix:
    rows, columns, values = [], [], []
    for said in (said for image in images for said in image):
        found = [places[word] for word in said if word in places]
        for at, word in enumerate(found):
            for away, other in enumerate(found[at + 1 : at + 1 + _WINDOW], 1):
                rows += [word, other]
                columns += [other, word]
                values += [1 / away] * 2
    return sparse.csr_matrix((values, (rows, columns)), (len(places), len(places)))


def _together(
    images: Sequence[Sequence[Sequence[str]]], places: Mapping[str, int]
) -> sparse.csr_matrix:
    """Count the images in which two different words occur together."""
    held = [sorted({w for said in image for w in said if w in places}) for image in images]
    columns = [places[word] for each in held for word in each]
    rows = np.repeat(np.arange(len(held)), [len(each) for each in held])
    shape = len(held), len(places)
    there = sparse.csr_matrix((np.ones(len(columns)), (rows, columns)), shape)
    found = (there.T @ there).tocsr()
    found.sort_indices()
    found.setdiag(0)  # which is there: every word is in an image with itself
    found.eliminate_zeros()
    return found
