"""Greedy and beam search as transformers' `generate` has it, on a captioner's own steps.

An image is done when no more can come of it, and leaves the batch then; so a caption does not
depend on what is decoded beside it, as it does not in the library.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from service.contract.errors import UnusableCheckpoint
from workers.inference.captioners import Captioner, Search
from workers.inference.decoding import CHUNK_BYTES, Decoded
from workers.inference.features import Inputs
from workers.progress import Progress, silent

_ROWS = 256  # hypotheses at once, if images are not too large
_NONE = -1e9  # the library's score of what is no hypothesis


def asked(own: Search, decoding: Mapping[str, Any]) -> Search:
    """A captioner's own search with what a request changes of it, by the names that requests have:
    `beam`, `min_words` and `max_words` (of pieces here), `length_power`.
    """
    changed: dict[str, Any] = {}
    if "beam" in decoding:
        changed["beams"] = decoding["beam"]
    if "length_power" in decoding:
        changed["length_penalty"] = decoding["length_power"]
    if "max_words" in decoding:
        changed["most"] = min(decoding["max_words"], own.longest)
        changed["least"] = min(own.least, changed["most"])
    if "min_words" in decoding:
        changed["least"] = min(decoding["min_words"] + 1, changed.get("most", own.most))
    return replace(own, **changed)


@torch.inference_mode()
def decode(
    model: Captioner, inputs: Inputs, search: Search, progress: Progress = silent
) -> list[Decoded]:
    """Decode a caption for each row of `inputs`."""
    model.check(inputs)
    captions: list[Decoded] = []
    size = min(model.together, max(1, _ROWS // search.beams))
    for start in range(0, len(inputs), size):
        block = torch.tensor(inputs[start : start + size], device=model.device)
        one = _Greedy if search.beams == 1 else _Beams
        captions += one(model, block, search).run()
        progress(len(captions), len(inputs))
    return captions


class _Searching:
    """The search for a block of images, of which some are left: `_places` of the block's."""

    def __init__(self, model: Captioner, inputs: Tensor, search: Search) -> None:
        self._model = model
        self._search = search
        self._end = model.tokens.end
        self._results: list[Decoded | None] = [None] * len(inputs)
        self._places = torch.arange(len(inputs), device=inputs.device)
        rows = self._places.repeat_interleave(search.beams)
        self._state = model.select(model.begin(model.look(inputs)), rows)
        self._last = torch.full((len(rows),), model.tokens.start, device=inputs.device)
        self._chunk = max(1, CHUNK_BYTES[inputs.device.type] // (4 * model.tokens.size))

    def run(self) -> list[Decoded]:
        for length in range(1, self._search.most + 1):
            done = self._advance(length)
            if done.any():
                self._leave(done)
            if not len(self._places):
                break
        found = [caption for caption in self._results if caption is not None]
        assert len(found) == len(self._results)
        return found

    def _advance(self, length: int) -> Tensor:
        """Search for the token of this number; which images are done."""
        raise NotImplementedError

    def _leave(self, done: Tensor) -> None:
        raise NotImplementedError

    def _best(self, length: int, many: int) -> tuple[Tensor, Tensor]:
        """Of each row, the log-probabilities of the most probable tokens and their ids."""
        hidden, self._state = self._model.step(self._state, self._last)
        parts = [
            self._best_of(self._model.output(chunk), length, many)
            for chunk in torch.split(hidden, self._chunk)
        ]
        return torch.cat([logp for logp, _ in parts]), torch.cat([words for _, words in parts])

    def _best_of(self, logits: Tensor, length: int, many: int) -> tuple[Tensor, Tensor]:
        total = torch.logsumexp(logits, dim=1, keepdim=True)  # before words are excluded
        if not total.isfinite().all():
            raise UnusableCheckpoint(
                "the model's logits are not finite: "
                "its weights are too large for float32 arithmetic"
            )
        forced = self._forced(length)
        if forced is not None:  # its probability counts as 1
            logits.fill_(-torch.inf)[:, forced] = 0.0
            total = torch.zeros_like(total)
        for word in self._excluded(length):
            logits[:, word] = -torch.inf
        best = logits.topk(min(many, logits.shape[1]), dim=1)
        return best.values - total, best.indices

    def _forced(self, length: int) -> int | None:
        search = self._search
        if search.forced_last is not None and length == search.most:
            return search.forced_last
        return search.forced_first if length == 1 else None

    def _excluded(self, length: int) -> tuple[int, ...]:
        search = self._search
        first = search.never_first if length == 1 else ()
        return (*search.never, *first, *([self._end] if length < search.least else []))


class _Greedy(_Searching):
    def __init__(self, model: Captioner, inputs: Tensor, search: Search) -> None:
        super().__init__(model, inputs, search)
        self._words: list[list[int]] = [[] for _ in self._results]
        self._logp = torch.zeros(len(inputs), dtype=torch.float64, device=inputs.device)

    def _advance(self, length: int) -> Tensor:
        logp, words = self._best(length, 1)
        self._last = words[:, 0]
        self._logp += logp[:, 0]
        ended = self._last == self._end
        for place, word in zip(self._places.tolist(), self._last.tolist(), strict=True):
            if word != self._end:
                self._words[place].append(word)
        return ended | (length == self._search.most)

    def _leave(self, done: Tensor) -> None:
        for place, logp in zip(self._places[done].tolist(), self._logp[done].tolist(), strict=True):
            self._results[place] = Decoded(tuple(self._words[place]), logp)
        left = (~done).nonzero()[:, 0]
        self._places, self._logp, self._last = (
            each[left] for each in (self._places, self._logp, self._last)
        )
        self._state = self._model.select(self._state, left)


@dataclass
class _Hypotheses:
    """(n, w): of n images, w hypotheses each, the best first. `words` (n, w, most)."""

    scores: Tensor
    words: Tensor
    lengths: Tensor

    @classmethod
    def none(cls, images: int, search: Search, device: torch.device) -> "_Hypotheses":
        shape = (images, search.beams)
        return cls(
            torch.full(shape, _NONE, device=device),
            torch.zeros((*shape, search.most), dtype=torch.long, device=device),
            torch.zeros(shape, dtype=torch.long, device=device),
        )

    def beside(self, others: "_Hypotheses") -> "_Hypotheses":
        return _Hypotheses(
            *(torch.cat([mine, theirs], dim=1) for mine, theirs in self._with(others))
        )

    def best(self, scores: Tensor, many: int) -> tuple["_Hypotheses", Tensor]:
        """The best by these scores, which are theirs from now on; and their places."""
        found = scores.topk(many, dim=1)
        at = found.indices
        words = self.words.gather(1, at[:, :, None].expand(-1, -1, self.words.shape[2]))
        return _Hypotheses(found.values, words, self.lengths.gather(1, at)), at

    def of(self, images: Tensor) -> "_Hypotheses":
        return _Hypotheses(self.scores[images], self.words[images], self.lengths[images])

    def _with(self, others: "_Hypotheses") -> list[tuple[Tensor, Tensor]]:
        return list(zip(vars(self).values(), vars(others).values(), strict=True))


class _Beams(_Searching):
    """Hypotheses go on or have ended; those that ended compete by their mean score."""

    def __init__(self, model: Captioner, inputs: Tensor, search: Search) -> None:
        super().__init__(model, inputs, search)
        self._going = _Hypotheses.none(len(inputs), search, inputs.device)
        self._going.scores[:, 0] = 0.0
        self._ended = _Hypotheses.none(len(inputs), search, inputs.device)
        self._is_ended = torch.zeros_like(self._ended.scores, dtype=torch.bool)

    def _advance(self, length: int) -> Tensor:
        w = self._search.beams
        found, rows = self._grown(length)
        last = found.words[:, :, length - 1]
        stops = (last == self._end) | (length == self._search.most)
        self._going, at = found.best(found.scores + stops * _NONE, w)
        self._finish(found, stops, length)
        self._last = self._going.words[:, :, length - 1].flatten()
        self._state = self._model.select(self._state, rows.gather(1, at).flatten())
        full = self._is_ended.all(dim=1) & (self._search.early_stopping is True)
        return ~self._may_improve(length) | full | (length == self._search.most)

    def _grown(self, length: int) -> tuple[_Hypotheses, Tensor]:
        """Twice as many continuations as beams, the best first, and the rows of their states."""
        w = self._search.beams
        logp, words = self._best(length, 2 * w)
        n, many = len(self._places), logp.shape[1]
        scores = (logp.view(n, w, many) + self._going.scores[:, :, None]).flatten(1)
        found = scores.topk(min(2 * w, w * many), dim=1)
        parents = found.indices // many
        grown = self._going.words.gather(1, parents[:, :, None].expand(-1, -1, self._search.most))
        grown[:, :, length - 1] = words.view(n, -1).gather(1, found.indices)
        lengths = torch.full_like(parents, length)
        rows = parents + w * torch.arange(n, device=parents.device)[:, None]
        return _Hypotheses(found.values, grown, lengths), rows

    def _finish(self, found: _Hypotheses, stops: Tensor, length: int) -> None:
        """Only the first `w` continuations may end here."""
        w = self._search.beams
        ends = stops.clone()
        ends[:, w:] = False
        scores = found.scores / length**self._search.length_penalty
        every = self._ended.beside(found)
        merged = torch.cat([self._ended.scores, scores + ~ends * _NONE], dim=1)
        self._ended, at = every.best(merged, w)
        self._is_ended = torch.cat([self._is_ended, ends], dim=1).gather(1, at)

    def _may_improve(self, length: int) -> Tensor:
        """The library's guess: at best, the best hypothesis goes on with certainty."""
        search = self._search
        longest = search.early_stopping == "never" and search.length_penalty > 0.0
        best = self._going.scores[:, :1] / (
            (search.most if longest else length) ** search.length_penalty
        )
        worst = self._ended.scores.min(dim=1, keepdim=True).values
        may: Tensor = (best > torch.where(self._is_ended, worst, _NONE)).any(dim=1)
        return may

    def _leave(self, done: Tensor) -> None:
        for row in done.nonzero()[:, 0].tolist():
            length = int(self._ended.lengths[row, 0])
            words = self._ended.words[row, 0, :length].tolist()
            score = float(self._ended.scores[row, 0]) * length**self._search.length_penalty
            if words and words[-1] == self._end:
                words.pop()
            self._results[int(self._places[row])] = Decoded(tuple(words), score)
        left = (~done).nonzero()[:, 0]
        w = self._search.beams
        rows = (left[:, None] * w + torch.arange(w, device=left.device)).flatten()
        self._going, self._ended = self._going.of(left), self._ended.of(left)
        self._is_ended = self._is_ended[left]
        self._places, self._last = self._places[left], self._last[rows]
        self._state = self._model.select(self._state, rows)
