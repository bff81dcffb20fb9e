"""ROUGE-L with beta 1.2, the best precision and the best recall of all references, as pycocoevalcap
has it, except for a caption without words: it has 0 here, and 1 there if a reference has none
either.
"""

from collections.abc import Iterator

import numpy as np

from workers.metrics import ngrams
from workers.metrics.family import Floats, Measured, Statistics, Task
from workers.metrics.ngrams import Ints

_BETA = 1.2
_CELLS = 1 << 14  # filled at once: more waste time on padding, fewer on calls


def measure(task: Task) -> Measured:
    values = np.concatenate([_scores(task, block) for block in task.blocks()])
    return Measured({"rouge_l": values}, {"rouge_l": values})


def corpus(statistics: Statistics) -> dict[str, float]:
    return {"rouge_l": float(np.mean(statistics["rouge_l"]))}


def _scores(task: Task, block: slice) -> Floats:
    begins, references = task.pairs(block)
    captions = np.repeat(
        np.arange(block.start, block.stop), np.diff(begins, append=len(references))
    )
    own, theirs = task.encoded.token_counts, task.references.token_counts
    common = _common(
        np.concatenate([task.encoded.tokens, task.references.tokens]),
        np.stack(
            [
                ngrams.starts(own)[captions],
                len(task.encoded.tokens) + ngrams.starts(theirs)[references],
            ]
        ),
        np.stack([own[captions], theirs[references]]),
    )
    common[task.encoded.word_counts[captions] == 0] = 0
    precision = np.maximum.reduceat(common / own[captions], begins)
    recall = np.maximum.reduceat(common / theirs[references], begins)
    return f_measure(precision, recall)


def f_measure(precision: Floats, recall: Floats) -> Floats:
    weighted = recall + _BETA**2 * precision
    found = (1 + _BETA**2) * precision * recall
    scores: Floats = np.divide(found, weighted, out=np.zeros_like(found), where=found > 0)
    return scores


def _common(tokens: Ints, begins: Ints, sizes: Ints) -> Ints:
    """The lengths of longest common subsequences; begins and sizes are (2, pairs)."""
    shorter = np.argsort(sizes, axis=0, kind="stable")
    begins, sizes = (np.take_along_axis(each, shorter, 0) for each in (begins, sizes))
    found = np.empty(sizes.shape[1], np.int64)
    for chosen in _alike(sizes[1]):
        runs = ((begins[side, chosen], sizes[side, chosen], -1 - side) for side in (0, 1))
        found[chosen] = _table(*(_padded(tokens, *run) for run in runs))
    return found


def _alike(sizes: Ints) -> Iterator[Ints]:
    """Groups of places with similar sizes, each as large as _CELLS allows."""
    order = np.argsort(-sizes, kind="stable")
    while len(order):
        many = max(1, _CELLS // int(sizes[order[0]]))
        yield order[:many]
        order = order[many:]


def _padded(tokens: Ints, begins: Ints, sizes: Ints, pad: int) -> Ints:
    """One row for each run of tokens, filled up with `pad`."""
    places = np.arange(sizes.max())
    inside = places < sizes[:, None]
    return np.where(inside, tokens[np.where(inside, begins[:, None] + places, 0)], pad)


def _table(short: Ints, long: Ints) -> Ints:
    """The lengths for all pairs at once, by the usual table, row by row. Within a row, the value
    from the left neighbour is a running maximum; a pad equals no token and keeps the value.
    """
    row = np.zeros((len(long), long.shape[1] + 1), np.int64)
    for token in short.T:
        longer = row[:, :-1] + (long == token[:, None])
        np.maximum.accumulate(np.maximum(row[:, 1:], longer), axis=1, out=row[:, 1:])
    return row[:, -1]
