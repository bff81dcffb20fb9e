"""The most probable token at each place."""

import torch
from torch import Tensor

from workers.inference.captioners import Captioner, Search
from workers.inference.decoding import Decoded
from workers.inference.generation.restraints import forced, restrain
from workers.inference.generation.searching import Searching, log_total


class Greedy(Searching):
    def __init__(self, model: Captioner, inputs: Tensor, search: Search) -> None:
        super().__init__(model, inputs, search)
        self._words = self._last.new_full((len(inputs), search.most + 1), model.tokens.start)
        self._logp = torch.zeros(len(inputs), dtype=torch.float64, device=inputs.device)

    def _advance(self, length: int) -> Tensor:
        logp, words = self._choices(length)
        self._last = words[:, 0]
        self._logp += logp[:, 0]
        self._words[:, length] = self._last
        return (self._last == self._end) | (length == self._search.most)

    def _read(self, length: int) -> Tensor:
        return self._words[:, :length]

    def _choose(self, logits: Tensor, read: Tensor) -> tuple[Tensor, Tensor]:
        """The library compares logits here; a token counts with its own probability, one that is
        forced with 1.
        """
        total = log_total(logits)
        scores = logits if self._search.repetition_penalty == 1.0 else logits.clone()
        restrain(scores, read, self._search, self._end)
        word = scores.argmax(dim=1, keepdim=True)
        if forced(self._search, read.shape[1]) is not None:
            return torch.zeros_like(total), word
        return logits.gather(1, word) - total, word

    def _leave(self, done: Tensor) -> None:
        ended = zip(
            self._places[done].tolist(),
            self._words[done, 1:].tolist(),
            self._logp[done].tolist(),
            strict=True,
        )
        for place, words, logp in ended:
            length = words.index(self._end) if self._end in words else len(words)
            self._results[place] = Decoded(tuple(words[:length]), logp)
        left = (~done).nonzero()[:, 0]
        self._places, self._words, self._logp, self._last = (
            each[left] for each in (self._places, self._words, self._logp, self._last)
        )
        self._state = self._model.select(self._state, left)
