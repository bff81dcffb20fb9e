"""Longest common subsequences on long integers, a few operations for each token (Hyyrö 2004).

Several texts stand side by side in one integer: each has a bit for each of its tokens, and at least
one more, where a carry ends.
"""

from collections.abc import Iterable


def fallen(places: Iterable[int], every: int) -> int:
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
