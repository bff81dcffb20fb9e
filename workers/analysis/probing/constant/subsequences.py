"""Longest common subsequences of one sentence and all references at once, computed on long integers
with a few operations for each token (Hyyrö 2004). Every reference has a bit for each of its tokens,
and at least one more where a carry ends.
"""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from workers.metrics import ngrams
from workers.metrics.ngrams import Ints
from workers.metrics.references import References

_REMEMBERED = 1 << 27  # bytes of bits


class Subsequences:
    def __init__(self, references: References) -> None:
        counts = references.token_counts
        widths = counts // 8 + 1  # bytes
        self._begins, self._bytes = ngrams.starts(widths), int(widths.sum())
        bits = ngrams.spread(8 * self._begins, counts)
        order = np.argsort(references.tokens, kind="stable")
        self._bits = bits[order]
        self._bounds = np.searchsorted(
            references.tokens[order], np.arange(len(references.words) + 1)
        ).tolist()
        self._all = self._integer(bits)
        self._where = lru_cache(max(64, _REMEMBERED // self._bytes))(self._token)

    def lengths(self, tokens: Sequence[int]) -> Ints:
        """The length of the longest common subsequence with each reference. A bit that is no longer
        set stands for a row of the usual table that is one higher than the row before it.
        """
        rows = self._all
        for token in tokens:
            if both := rows & self._where(token):
                rows = (rows + both | rows ^ both) & self._all
        fallen = (self._all ^ rows).to_bytes(self._bytes, "little")
        counts = np.bitwise_count(np.frombuffer(fallen, np.uint8))
        lengths: Ints = np.add.reduceat(counts, self._begins, dtype=np.int64)
        return lengths

    def _token(self, token: int) -> int:
        """The bits of all places where references hold the token; 0 if none holds it."""
        if token >= len(self._bounds) - 1:
            return 0
        return self._integer(self._bits[self._bounds[token] : self._bounds[token + 1]])

    def _integer(self, bits: Ints) -> int:
        values = np.bincount(bits >> 3, 1 << (bits & 7), self._bytes)
        return int.from_bytes(values.astype(np.uint8).tobytes(), "little")
