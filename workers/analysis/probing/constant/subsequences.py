"""Longest common subsequences of one sentence and all references at once."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from workers.metrics import ngrams, subsequences
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
        """The length of the longest common subsequence with each reference."""
        fallen = subsequences.fallen(map(self._where, tokens), self._all)
        counts = np.bitwise_count(np.frombuffer(fallen.to_bytes(self._bytes, "little"), np.uint8))
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
