"""What greedy and beam search share."""

import torch
from torch import Tensor

from service.contract.errors import UnusableCheckpoint
from workers.inference.captioners import Captioner, Search
from workers.inference.decoding import CHUNK_BYTES, Decoded


class Searching:
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

    def _read(self, length: int) -> Tensor:
        """Of each row, START and the tokens up to the one of this number: (rows, length)."""
        raise NotImplementedError

    def _choices(self, length: int) -> tuple[Tensor, Tensor]:
        """Of each row, the scores of the best tokens of this number, and their ids: (rows, k)."""
        hidden, self._state = self._model.step(self._state, self._last)
        read = self._read(length)
        parts = [
            self._choose(
                self._model.output(hidden[at : at + self._chunk]), read[at : at + self._chunk]
            )
            for at in range(0, len(hidden), self._chunk)
        ]
        return torch.cat([scores for scores, _ in parts]), torch.cat([words for _, words in parts])

    def _choose(self, logits: Tensor, read: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError


def log_total(logits: Tensor) -> Tensor:
    """What is subtracted from logits to make log-probabilities of them: (n, 1)."""
    total = torch.logsumexp(logits, dim=1, keepdim=True)
    if not total.isfinite().all():
        raise UnusableCheckpoint(
            "the model's logits are not finite: its weights are too large for float32 arithmetic"
        )
    return total
