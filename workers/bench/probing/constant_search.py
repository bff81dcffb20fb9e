"""An exact search, among hundreds of thousands of sentences, for the one that scores highest as the
caption of every image.

Every sentence gets a bound on its score. Then sentences are scored, the highest bound first, until
the best score found is at least the next bound. If several are equally good, the earliest wins.
"""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from safetensors import SafetensorError, safe_open

from service.contract.errors import MetricFailed, RunCanceled, UnknownMetric
from workers import tensor_files
from workers.bench.probing.constant_objectives import (
    ConstantBleu,
    ConstantCiderD,
    ConstantRougeL,
    NumberedSentences,
)
from workers.metrics.families.bleu import NAMES
from workers.metrics.family import Floats
from workers.metrics.ngrams import Ints
from workers.metrics.references import PreparedReferences
from workers.progress import Progress, ignore_progress

_FORMAT = "1"
_BLOCK = 8192  # sentences bounded between two reports of progress: a fifth of a second
_KEPT = 4096  # sentences scored between two writes of the state


class ConstantObjective(Protocol):
    """A metric that is searched for. A bound is never below the score, which has all digits."""

    batch: int  # sentences to score at once

    def bounds(self, places: Ints) -> Floats: ...

    def scores(self, places: Ints) -> list[float]: ...


OBJECTIVES: Mapping[str, Callable[[NumberedSentences, PreparedReferences], ConstantObjective]] = {
    **{name: partial(ConstantBleu, name) for name in NAMES},
    "cider_d": ConstantCiderD,
    "rouge_l": ConstantRougeL,
}


@dataclass(frozen=True)
class BestSentence:
    """The best sentence, its place; `scored` of the `different` sentences had to be scored."""

    place: int
    text: str
    score: float
    scored: int
    different: int


@dataclass
class _SearchState:
    """`bounds` of the first sentences; when all have one, `scored` counts those with a score."""

    bounds: Floats
    scored: int = 0
    place: int = -1
    score: float = -np.inf


def find_best_sentence(
    sentences: Sequence[str],
    references: PreparedReferences,
    objective: str = "bleu_4",
    *,
    state: Path | None = None,
    progress: Progress = ignore_progress,
) -> BestSentence:
    """Find the sentence with the highest score. `sentences` are tokens joined by blanks, as the
    references' tokenizer makes them. The search keeps its progress in the file `state`: a search
    that was killed continues from there; a search for other sentences, other references or another
    objective starts anew.
    """
    if not sentences:
        raise MetricFailed("expected at least one training sentence, found none")
    if objective not in OBJECTIVES:
        known = ", ".join(OBJECTIVES)
        raise UnknownMetric(f"expected one of the objectives {known}, found {objective!r:.60}")
    return _SentenceSearch(sentences, references, objective, state, progress).run()


class _SentenceSearch:
    def __init__(
        self,
        sentences: Sequence[str],
        references: PreparedReferences,
        objective: str,
        file: Path | None,
        progress: Progress,
    ) -> None:
        first = {text: place for place, text in reversed(list(enumerate(sentences)))}
        self._texts = sorted(first, key=lambda text: (text.count(" "), first[text]))
        self._places = np.array([first[text] for text in self._texts])
        self._objective = OBJECTIVES[objective](
            NumberedSentences(self._texts, references), references
        )
        self._key = _digest(sentences, references, objective)
        self._file, self._progress = file, progress
        self._state = self._read() or _SearchState(np.empty(0))

    def run(self) -> BestSentence:
        self._bound()
        self._score()
        state, total = self._state, len(self._texts)
        self._progress(2 * total, 2 * total)
        text, place = self._texts[state.place], int(self._places[state.place])
        return BestSentence(place, text, state.score, state.scored, total)

    def _bound(self) -> None:
        state, total = self._state, len(self._texts)
        while (done := len(state.bounds)) < total:
            self._pause(done)
            block = np.arange(done, min(done + _BLOCK, total))
            state.bounds = np.concatenate([state.bounds, self._objective.bounds(block)])
            self._write()

    def _score(self) -> None:
        state, total = self._state, len(self._texts)
        order = np.lexsort((self._places, -state.bounds))
        kept = state.scored
        while len(hopeful := self._hopeful(order[state.scored :][: self._objective.batch])):
            self._pause(total + state.scored)
            for place, score in zip(hopeful, self._objective.scores(hopeful), strict=True):
                if self._beats(score, place):
                    state.place, state.score = int(place), score
            state.scored += len(hopeful)
            if state.scored - kept >= _KEPT:
                kept = state.scored
                self._write()
        self._write()

    def _hopeful(self, places: Ints) -> Ints:
        """Sentences whose bound allows a better score, or an equal one of an earlier sentence."""
        hopeful: Ints = places[self._beats(self._state.bounds[places], places)]
        return hopeful

    def _beats(self, score: Any, place: Any) -> Any:
        """True, of each score, if it is better than the best, or equal and of an earlier place."""
        state = self._state
        earlier = self._places[place] < self._places[state.place]
        return (score > state.score) | ((score == state.score) & earlier)

    def _pause(self, done: int) -> None:
        try:
            self._progress(done, 2 * len(self._texts))
        except RunCanceled:
            self._write()
            raise

    def _write(self) -> None:
        if self._file is not None:
            state = self._state
            metadata = {
                "prescore_search": _FORMAT,
                "search": self._key,
                "best": json.dumps([state.scored, state.place, state.score.hex()]),
            }
            tensor_files.write_tensors(self._file, {"bounds": state.bounds}, metadata)

    def _read(self) -> _SearchState | None:
        if self._file is None or not self._file.exists():
            return None
        try:
            with safe_open(self._file, framework="numpy") as file:
                metadata = file.metadata() or {}
                bounds = file.get_tensor("bounds")
        except (SafetensorError, OSError) as error:
            raise MetricFailed(f"{self._file.name} is no state of a search: {error}") from None
        if (metadata.get("prescore_search"), metadata.get("search")) != (_FORMAT, self._key):
            return None
        scored, place, score = json.loads(metadata["best"])
        return _SearchState(bounds, scored, place, float.fromhex(score))


def _digest(sentences: Sequence[str], references: PreparedReferences, objective: str) -> str:
    digest = hashlib.sha256(f"{objective} {references.signature}\n".encode())
    for texts in (sentences, *references.captions):
        digest.update("\n".join([str(len(texts)), *texts, ""]).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
