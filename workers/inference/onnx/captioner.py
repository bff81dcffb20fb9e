"""The captioner of an ONNX bundle."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from service.contract.errors import InvalidCheckpoint
from service.contract.formats import onnx_bundles, packages
from service.contract.formats.onnx_bundles import Bundle
from workers.inference import features, vocabulary
from workers.inference.features import Inputs
from workers.inference.memory import check_fits
from workers.inference.onnx.running import SECONDS, Graphs, Rows
from workers.inference.packing import Packed
from workers.inference.vocabulary import Encoded

_MEMORY = 4_000_000_000  # bytes that the child may take where nobody says
_PROGRAM = 400_000_000  # onnxruntime, and what one call computes
_LOGITS_BYTES = 64_000_000  # of one call of `hidden`
_BATCH_TOKENS = 8_192


class State(NamedTuple):
    images: Rows
    cells: Rows


@dataclass(frozen=True)
class ById:
    """Words by a network's own ids."""

    bundle: Bundle

    @property
    def size(self) -> int:
        return len(self.bundle.words)

    @property
    def start(self) -> int:
        return self.bundle.manifest.vocabulary.start

    @property
    def end(self) -> int:
        return self.bundle.manifest.vocabulary.end

    @property
    def never(self) -> tuple[int, ...]:
        return (self.bundle.manifest.vocabulary.unknown,)

    @cached_property
    def _ids(self) -> dict[str, int]:
        special = (self.end, *self.never)  # START may be a word, as it is in checkpoints
        return {word: at for at, word in enumerate(self.bundle.words) if at not in special}

    def encode(self, references: Iterable[Sequence[str]]) -> Encoded:
        (unknown,) = self.never
        tokenizer, edges = self.bundle.manifest.tokenizer, (self.start, self.end)
        return vocabulary.encode_by(
            self._ids, references, tokenizer, unknown=unknown, start=edges[0], end=edges[1]
        )

    def text(self, ids: Sequence[int]) -> str:
        return " ".join(self.bundle.words[at] for at in ids)


class Onnx:
    """Ranks are float32's: onnxruntime computes in the precision of the graph. So prefixes are read
    off columns, which are computed in the same blocks each time.
    """

    settles = False
    walks = False
    search = None
    together = 128

    def __init__(self, bundle: Bundle, graphs: Graphs) -> None:
        self.bundle = bundle
        self.tokens = ById(bundle)
        self.graphs = graphs

    @property
    def device(self) -> torch.device:
        return torch.device("cpu")

    @property
    def batch_tokens(self) -> int:
        return max(1, min(_BATCH_TOKENS, _LOGITS_BYTES // (4 * self.tokens.size)))

    def output(self, hidden: Tensor) -> Tensor:
        return hidden

    def inputs(self, bundle: Path, images: Sequence[str]) -> Inputs:
        return features.read(bundle, images, self.bundle.manifest.encoder)

    def check(self, inputs: Inputs) -> None:
        features.check_size(inputs, self.bundle.manifest.feature_size)

    def look(self, features: Tensor) -> Any:  # rows by name: a tensor's indexing is all they share
        return self.graphs.look(features.numpy())

    def hidden(self, images: Any, captions: Packed) -> Tensor:
        images = images[captions.image_rows]
        if self.bundle.manifest.score is not None:
            return self._forced(images, captions)
        state = self.begin(images)
        found, done = [], 0
        for count in captions.counts:
            words = captions.words[done : done + count]
            if count < len(state.cells):
                state = self.select(state, torch.arange(count))
            logits, state = self.step(state, words)
            found.append(logits)
            done += count
        return torch.cat(found)

    def begin(self, images: Any) -> State:
        return State(images, images)

    def step(self, state: State, words: Tensor) -> tuple[Tensor, State]:
        logits, cells = self.graphs.step(state.images, state.cells, words)
        return logits, State(state.images, cells)

    def select(self, state: State, rows: Tensor) -> State:
        return State(state.images[rows], state.cells[rows])

    def exact(self) -> Self:
        raise NotImplementedError("onnxruntime computes in the precision of the graph")

    def try_out(self) -> None:
        """Read START after two images of zeros. Raises UnusableCheckpoint where that fails."""
        size = self.bundle.manifest.feature_size
        state = self.begin(self.look(torch.zeros(2, size)))
        self.step(state, torch.full((2,), self.tokens.start))

    def close(self) -> None:
        """End the process that runs the graphs; the next call starts another one."""
        self.graphs.close()

    def _forced(self, images: Rows, captions: Packed) -> Tensor:
        """All words at once. Shorter captions are filled with END, behind all that is looked at."""
        times = len(captions.counts)
        words = torch.full((len(images), times), self.tokens.end)
        done = 0
        for time, count in enumerate(captions.counts):
            words[:count, time] = captions.words[done : done + count]
            done += count
        logits = self.graphs.score(images, words)
        return torch.cat([logits[:count, time] for time, count in enumerate(captions.counts)])


def read(
    path: Path,
    memory: int | None = None,
    threads: int | None = None,
    seconds: float = SECONDS,
    without: frozenset[str] = frozenset(),
) -> Onnx:
    """The captioner of a bundle: a folder, a tar or a zip that is not compressed.

    `memory`: bytes that it may take; `seconds`: of one call of a graph. Raises InvalidCheckpoint
    (files, manifest, structure of the graphs), OutOfMemory, and UnusableCheckpoint where
    onnxruntime does not run the graphs.
    """
    if not path.exists():
        raise InvalidCheckpoint(f"expected an ONNX bundle, found nothing at {path}")
    with packages.opened(path) as package:
        bundle = onnx_bundles.judge(package)
    limit = _MEMORY if memory is None else memory
    needs = 2 * sum(place.size for place in bundle.places.values()) + _PROGRAM
    check_fits(f"an ONNX bundle of {bundle.parameters:,} parameters", needs, limit)
    threads = torch.get_num_threads() if threads is None else threads
    graphs = Graphs(bundle, memory=limit, threads=threads, seconds=seconds, without=without)
    found = Onnx(bundle, graphs)
    found.try_out()
    return found
