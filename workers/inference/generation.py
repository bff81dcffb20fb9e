"""Greedy and beam search as transformers' `generate` has it, on a captioner's own steps.

An image is done when no better caption can come, and leaves the batch then; so a caption does not
depend on the images that are decoded beside it, as it does not in the library.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from service.contract.errors import UnusableCheckpoint
from workers.inference.captioners import Captioner, CaptionerState, GenerationOptions
from workers.inference.decoding import CHUNK_BYTES, DecodedCaption
from workers.inference.features import Inputs
from workers.inference.inputs import group_inputs
from workers.progress import Progress, ignore_progress


class GenerationSearch:
    """The search for a block of images, of which some are left: `_places` of the block's. `state`:
    of the model, before START, with a row for each of `many` images.
    """

    def __init__(
        self, model: Captioner, state: CaptionerState, many: int, search: GenerationOptions
    ) -> None:
        self._model = model
        self._search = search
        self._end_ids = (model.tokens.end, *search.other_ends)
        self._ends = torch.tensor(self._end_ids, device=model.device)
        self._before = torch.tensor(search.before, dtype=torch.long, device=model.device)
        self._results: list[DecodedCaption | None] = [None] * many
        self._places = torch.arange(many, device=model.device)
        rows = self._places.repeat_interleave(search.beams)
        self._state = model.select(state, rows)
        self._last = torch.full((len(rows),), model.tokens.start, device=model.device)
        self._chunk = max(1, CHUNK_BYTES[model.device.type] // (4 * model.tokens.size))

    def run(self) -> list[DecodedCaption]:
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
        """Read each row's START and the tokens up to the one of this number: (rows, length)."""
        raise NotImplementedError

    def _restrain(self, scores: Tensor, read: Tensor) -> None:
        if self._search.before:
            read = torch.cat([self._before.expand(len(read), -1), read], dim=1)
        restrain_scores(scores, read, self._search, self._ends)

    def _without_end(self, words: list[int]) -> tuple[int, ...]:
        ends = (at for at, word in enumerate(words) if word in self._end_ids)
        length = next(ends, len(words))
        return tuple(words[:length])

    def _choices(self, length: int) -> tuple[Tensor, Tensor]:
        """Scores and ids of the best tokens of this number, for each row: (rows, k) each."""
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


def compute_log_total(logits: Tensor) -> Tensor:
    """Log of the sum of exponentials (n, 1): logits minus it are log-probabilities."""
    total = torch.logsumexp(logits, dim=1, keepdim=True)
    if not total.isfinite().all():
        raise UnusableCheckpoint(
            "the model's logits are not finite: its weights are too large for float32 arithmetic"
        )
    return total


_ROWS = 256  # hypotheses at once, if images are not too large


def override_options(own: GenerationOptions, decoding: Mapping[str, Any]) -> GenerationOptions:
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
def generate_captions(
    model: Captioner,
    inputs: Inputs,
    search: GenerationOptions,
    progress: Progress = ignore_progress,
) -> list[DecodedCaption]:
    """Decode a caption for each row of `inputs`."""
    model.check(inputs)
    captions: dict[int, DecodedCaption] = {}
    size = min(model.together, max(1, _ROWS // search.beams))
    one = GreedySearch if search.beams == 1 else BeamSearch
    for start in range(0, len(inputs), size):
        for rows, block in group_inputs(inputs[start : start + size], size, model.device):
            state = model.begin(model.look(block))
            found = one(model, state, len(rows), search).run()
            captions |= {start + row: caption for row, caption in zip(rows, found, strict=True)}
            progress(len(captions), len(inputs))
    return [captions[row] for row in range(len(inputs))]


_NONE = -1e9  # the library's score of what is no hypothesis


@dataclass
class _Hypotheses:
    """Hypotheses (n, w): w of each of n images, the best first. `words` (n, w, most)."""

    scores: Tensor
    words: Tensor
    lengths: Tensor

    @classmethod
    def none(cls, images: int, search: GenerationOptions, device: torch.device) -> "_Hypotheses":
        shape = (images, search.beams)
        return cls(
            torch.full(shape, _NONE, device=device),
            torch.zeros((*shape, search.most), dtype=torch.long, device=device),
            torch.zeros(shape, dtype=torch.long, device=device),
        )

    def beside(self, others: "_Hypotheses") -> "_Hypotheses":
        pairs = zip(vars(self).values(), vars(others).values(), strict=True)
        return _Hypotheses(*(torch.cat(pair, dim=1) for pair in pairs))

    def best(self, scores: Tensor, many: int) -> tuple["_Hypotheses", Tensor]:
        """The best by these scores, which are theirs from now on; and their places."""
        found = scores.topk(many, dim=1)
        at = found.indices
        words = self.words.gather(1, at[:, :, None].expand(-1, -1, self.words.shape[2]))
        return _Hypotheses(found.values, words, self.lengths.gather(1, at)), at

    def of(self, images: Tensor) -> "_Hypotheses":
        return _Hypotheses(self.scores[images], self.words[images], self.lengths[images])


class BeamSearch(GenerationSearch):
    """Hypotheses go on or have ended; those that ended compete by their mean score."""

    def __init__(
        self, model: Captioner, state: CaptionerState, many: int, search: GenerationOptions
    ) -> None:
        super().__init__(model, state, many, search)
        self._going = _Hypotheses.none(many, search, model.device)
        self._going.scores[:, 0] = 0.0
        self._ended = _Hypotheses.none(many, search, model.device)
        self._is_ended = torch.zeros_like(self._ended.scores, dtype=torch.bool)

    def _advance(self, length: int) -> Tensor:
        w = self._search.beams
        found, rows = self._grown(length)
        last = found.words[:, :, length - 1]
        stops = torch.isin(last, self._ends) | (length == self._search.most)
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
        scores = logits.sub_(compute_log_total(logits))
        self._restrain(scores, read)
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
        gone = done.nonzero()[:, 0]
        ended = self._ended.of(gone)
        best = ended.words[:, 0], ended.lengths[:, 0], ended.scores[:, 0]
        lists = (each.tolist() for each in (self._places[gone], *best))
        for place, words, length, mean in zip(*lists, strict=True):
            written = self._without_end(words[:length])
            score = mean * length**self._search.length_penalty
            self._results[place] = DecodedCaption(written, score)
        left = (~done).nonzero()[:, 0]
        w = self._search.beams
        rows = (left[:, None] * w + torch.arange(w, device=left.device)).flatten()
        self._going, self._ended = self._going.of(left), self._ended.of(left)
        self._is_ended = self._is_ended[left]
        self._places, self._last = self._places[left], self._last[rows]
        self._state = self._model.select(self._state, rows)


class GreedySearch(GenerationSearch):
    def __init__(
        self, model: Captioner, state: CaptionerState, many: int, search: GenerationOptions
    ) -> None:
        super().__init__(model, state, many, search)
        self._words = self._last.new_full((many, search.most + 1), model.tokens.start)
        self._logp = torch.zeros(many, dtype=torch.float64, device=model.device)

    def _advance(self, length: int) -> Tensor:
        logp, words = self._choices(length)
        self._last = words[:, 0]
        self._logp += logp[:, 0]
        self._words[:, length] = self._last
        return torch.isin(self._last, self._ends) | (length == self._search.most)

    def _read(self, length: int) -> Tensor:
        return self._words[:, :length]

    def _choose(self, logits: Tensor, read: Tensor) -> tuple[Tensor, Tensor]:
        """The library compares logits here; a token counts with its own probability, one that is
        forced with 1.
        """
        total = compute_log_total(logits)
        scores = logits if self._search.repetition_penalty == 1.0 else logits.clone()
        self._restrain(scores, read)
        word = scores.argmax(dim=1, keepdim=True)
        if find_forced_token(self._search, read.shape[1]) is not None:
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
            self._results[place] = DecodedCaption(self._without_end(words), logp)
        left = (~done).nonzero()[:, 0]
        self._places, self._words, self._logp, self._last = (
            each[left] for each in (self._places, self._words, self._logp, self._last)
        )
        self._state = self._model.select(self._state, left)


def restrain_scores(scores: Tensor, read: Tensor, search: GenerationOptions, ends: Tensor) -> None:
    """Change scores (n, V) in place; `read` (n, m) are the tokens before: a prompt, START, and the
    caption's own.
    """
    _penalise(scores, read, search.repetition_penalty)
    _ban_repetition(scores, read, search.no_repeat_ngram)
    length = read.shape[1] - len(search.before)  # the number of the next token
    if length < search.least:
        scores[:, ends] = -torch.inf
    word = find_forced_token(search, length)
    if word is not None:
        scores.fill_(-torch.inf)[:, word] = 0.0
    first = search.never_first if length == 1 else ()
    for word in (*search.never, *first):
        scores[:, word] = -torch.inf


def find_forced_token(search: GenerationOptions, length: int) -> int | None:
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
    """Ban tokens that would repeat a sequence of `size` tokens."""
    if not 0 < size <= read.shape[1]:
        return
    last = read[:, read.shape[1] + 1 - size :]
    there = read.unfold(1, size, 1)
    rows, places = (there[:, :, :-1] == last[:, None]).all(dim=2).nonzero(as_tuple=True)
    scores[rows, there[rows, places, -1]] = -torch.inf
