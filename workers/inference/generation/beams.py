"""Several hypotheses for each image, as transformers ranks and ends them."""

from dataclasses import dataclass

import torch
from torch import Tensor

from workers.inference.captioners import Captioner, Search
from workers.inference.decoding import Decoded
from workers.inference.generation.restraints import restrain
from workers.inference.generation.searching import Searching, log_total

_NONE = -1e9  # the library's score of what is no hypothesis


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


class Beams(Searching):
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
        logp, words = self._choices(length)
        n, many = len(self._places), logp.shape[1]
        scores = (logp.view(n, w, many) + self._going.scores[:, :, None]).flatten(1)
        found = scores.topk(min(2 * w, w * many), dim=1)
        parents = found.indices // many
        grown = self._going.words.gather(1, parents[:, :, None].expand(-1, -1, self._search.most))
        grown[:, :, length - 1] = words.view(n, -1).gather(1, found.indices)
        lengths = torch.full_like(parents, length)
        rows = parents + w * torch.arange(n, device=parents.device)[:, None]
        return _Hypotheses(found.values, grown, lengths), rows

    def _read(self, length: int) -> Tensor:
        words = self._going.words.flatten(0, 1)[:, : length - 1]
        start = words.new_full((len(words), 1), self._model.tokens.start)
        return torch.cat([start, words], dim=1)

    def _choose(self, logits: Tensor, read: Tensor) -> tuple[Tensor, Tensor]:
        """The library compares log-probabilities here, and excludes and penalises after it."""
        scores = logits.sub_(log_total(logits))
        restrain(scores, read, self._search, self._end)
        best = scores.topk(min(2 * self._search.beams, scores.shape[1]), dim=1)
        return best.values, best.indices

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
