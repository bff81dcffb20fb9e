"""ROUGE-L with beta 1.2, the best precision and the best recall of all references, as pycocoevalcap
has it, except for a caption without words: it has 0 here, and 1 there if a reference has none
either.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from workers.metrics import ngrams
from workers.metrics.family import FamilyMeasures, Floats, ScoringInput
from workers.metrics.ngrams import Ints

_BETA = 1.2
_COMPARED = 1 << 20  # tokens at once, a byte each
_NONE = -1  # no token


def measure(task: ScoringInput) -> FamilyMeasures:
    values = np.concatenate([_scores(task, block) for block in task.blocks()])
    return FamilyMeasures.of_scores("rouge_l", values)


def _scores(task: ScoringInput, block: slice) -> Floats:
    begins, references = task.pairs(block)
    captions = np.repeat(
        np.arange(block.start, block.stop), np.diff(begins, append=len(references))
    )
    own, theirs = task.encoded.token_counts, task.references.token_counts
    common = _common(task, block, begins, references)
    common[task.encoded.word_counts[captions] == 0] = 0
    precision = np.maximum.reduceat(common / own[captions], begins)
    recall = np.maximum.reduceat(common / theirs[references], begins)
    return compute_f_measure(precision, recall)


def compute_f_measure(precision: Floats, recall: Floats) -> Floats:
    weighted = recall + _BETA**2 * precision
    found = (1 + _BETA**2) * precision * recall
    scores: Floats = np.divide(found, weighted, out=np.zeros_like(found), where=found > 0)
    return scores


def _common(task: ScoringInput, block: slice, begins: Ints, references: Ints) -> Ints:
    """The lengths of longest common subsequences, for each pair of a caption and a reference."""
    tokens, starts = _side_by_side(task, references)
    ends = np.append(starts[begins[1:]], len(tokens))
    own = np.cumsum(np.append(0, task.encoded.token_counts))[block.start : block.stop + 1]
    matched = [
        _matched(task.encoded.tokens[first:last].tolist(), tokens[start:end])
        for first, last, start, end in zip(own, own[1:], starts[begins], ends, strict=False)
    ]
    lengths: Ints = np.add.reduceat(np.concatenate(matched), starts, dtype=np.int64)
    return lengths


def _side_by_side(task: ScoringInput, references: Ints) -> tuple[Ints, Ints]:
    """The tokens of these references and where each begins; after each is a place without one."""
    counts = task.references.token_counts
    sizes = counts[references]
    starts = ngrams.compute_starts(sizes + 1)
    tokens = np.full(int(sizes.sum()) + len(sizes), _NONE)
    theirs = ngrams.spread_runs(ngrams.compute_starts(counts)[references], sizes)
    tokens[ngrams.spread_runs(starts, sizes)] = task.references.tokens[theirs]
    return tokens, starts


def _matched(own: Sequence[int], theirs: Ints) -> NDArray[np.uint8]:
    """Mark with 1 the tokens of an image's references that make the common subsequence longer."""
    places = dict(_places(list(dict.fromkeys(own)), theirs))
    bits = clear_common_bits(map(places.__getitem__, own), _integer(theirs != _NONE))
    found = np.frombuffer(bits.to_bytes(-(-len(theirs) // 8), "little"), np.uint8)
    return np.unpackbits(found, count=len(theirs), bitorder="little")


def _places(own: Sequence[int], theirs: Ints) -> Iterator[tuple[int, int]]:
    """Tokens, and the bits of the places where references hold them."""
    many = max(1, _COMPARED // len(theirs))
    for start in range(0, len(own), many):
        some = own[start : start + many]
        equal = np.packbits(np.equal.outer(some, theirs), axis=1, bitorder="little")
        for token, row in zip(some, equal, strict=True):
            yield token, int.from_bytes(row.data, "little")


def _integer(bits: NDArray[np.bool_]) -> int:
    return int.from_bytes(np.packbits(bits, bitorder="little").data, "little")


def clear_common_bits(places: Iterable[int], every: int) -> int:
    """The bits that one text clears in the others, by which their longest common subsequences are
    counted. `every`: the bits of all tokens. `places`: for each token of the one text, the bits of
    the same token in the others.

    A bit that is no longer set stands for a row of the usual table that is one higher than the row
    before it.
    """
    rows = every
    for place in places:
        if both := rows & place:
            rows = (rows + both | rows ^ both) & every
    return every ^ rows
