"""What a search changes of the scores of next tokens, in the order of transformers' `generate`."""

import torch
from torch import Tensor

from workers.inference.captioners import Search


def restrain(scores: Tensor, read: Tensor, search: Search, end: int) -> None:
    """Change scores (n, V) in place; `read` (n, m) are the tokens before, START among them."""
    _penalise(scores, read, search.repetition_penalty)
    _ban_repetition(scores, read, search.no_repeat_ngram)
    length = read.shape[1]  # the number of the next token
    if length < search.least:
        scores[:, end] = -torch.inf
    word = forced(search, length)
    if word is not None:
        scores.fill_(-torch.inf)[:, word] = 0.0
    first = search.never_first if length == 1 else ()
    for word in (*search.never, *first):
        scores[:, word] = -torch.inf


def forced(search: Search, length: int) -> int | None:
    """The only token that may have this number, if there is one."""
    if search.forced_last is not None and length == search.most:
        return search.forced_last
    return search.forced_first if length == 1 else None


def _penalise(scores: Tensor, read: Tensor, penalty: float) -> None:
    """A token that is there already, once or more often, is less probable once."""
    if penalty == 1.0:
        return
    own = scores.gather(1, read)
    scores.scatter_(1, read, torch.where(own < 0, own * penalty, own / penalty))


def _ban_repetition(scores: Tensor, read: Tensor, size: int) -> None:
    """No `size` tokens in a row occur twice."""
    if not 0 < size <= read.shape[1]:
        return
    last = read[:, read.shape[1] + 1 - size :]
    there = read.unfold(1, size, 1)
    rows, places = (there[:, :, :-1] == last[:, None]).all(dim=2).nonzero(as_tuple=True)
    scores[rows, there[rows, places, -1]] = -torch.inf
