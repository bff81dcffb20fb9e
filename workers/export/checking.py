"""Holds the graphs of a bundle against the modules that they were made of, on inputs other than the
examples: other values, other numbers of rows, longer captions, and states that differ in each
tensor, so that two inputs that became one are seen.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from service.contract.errors import RequestRefused
from service.contract.formats.onnx_bundles import Bundle
from workers.export.modules import Modules, Tensors, distinct

ROWS = (1, 7, 64)
LENGTHS = (1, 5, 12)
_STEPS = 6
MOST_DIFFERENCE = 1e-4  # of log-probabilities, and of states beside their size
_NOISE = 0.1


@torch.no_grad()
def check(folder: Path, bundle: Bundle, modules: Modules) -> None:
    """Raises RequestRefused with the module, and where it differs most."""
    import onnxruntime

    onnxruntime.disable_telemetry_events()
    found = bundle.manifest
    parts = {"look": found.look, "step": found.step, "score": found.score}
    sessions = {
        name: onnxruntime.InferenceSession(
            (folder / part.file).read_bytes(), providers=["CPUExecutionProvider"]
        )
        for name, part in parts.items()
        if part is not None
    }
    generator = torch.Generator().manual_seed(0)
    for rows in ROWS:
        _Check(sessions, bundle, modules, generator).rows(rows)


class _Check:
    def __init__(
        self,
        sessions: dict[str, Any],
        bundle: Bundle,
        modules: Modules,
        generator: torch.Generator,
    ) -> None:
        self._sessions = sessions
        self._manifest = bundle.manifest
        self._words = bundle.size
        self._modules = modules
        self._generator = generator
        pieces = bundle.manifest.pieces
        self._most = max(LENGTHS) if pieces is None else pieces.longest  # that may be read

    def rows(self, rows: int) -> None:
        images = torch.randn(rows, *self._modules.image, generator=self._generator)
        looked = self._modules.look(images)
        graphs = self._run("look", self._manifest.looked, {self._manifest.seen: images})
        for name, one, other in zip(self._manifest.looked, looked, graphs, strict=True):
            _compare(f"look, {name}, {rows} rows", one, other)
        first = distinct(looked)
        self._steps(first)
        self._steps(self._noisy(first))
        if self._modules.score is not None:
            for length in sorted({min(length, self._most) for length in LENGTHS}):
                self._score(first, self._random(rows, length))

    def _steps(self, first: Tensors) -> None:
        """Both go their own way from the same beginning."""
        images = first[: self._modules.images]
        ours: Sequence[Tensor] = first[self._modules.images :]
        theirs, rows = ours, len(first[0])
        after = [each.after for each in self._manifest.state]
        for step in range(min(_STEPS, self._most)):
            words = self._random(rows)
            logits, *ours = self._modules.step(words, *images, *ours)
            asked = [self._manifest.step.logits, *after]
            graph, *theirs = self._run("step", asked, self._fed(words, (*images, *theirs)))
            where = f"step {step + 1}, {rows} rows"
            _compare(f"{where}, logits", logits.log_softmax(1), graph.log_softmax(1))
            for name, one, other in zip(after, ours, theirs, strict=True):
                _compare(f"{where}, {name}", one, other)

    def _score(self, first: Tensors, words: Tensor) -> None:
        """Held against the module, and against steps: it must not look at later words."""
        assert self._modules.score is not None
        assert self._manifest.score is not None
        where = f"score, {len(words)} rows of {words.shape[1]} words"
        logits = self._modules.score(words, *first).log_softmax(2)
        fed = self._fed(words, first, self._manifest.score.words)
        there = {each.name for each in self._sessions["score"].get_inputs()}
        fed = {name: each for name, each in fed.items() if name in there}
        (graph,) = self._run("score", [self._manifest.score.logits], fed)
        _compare(where, logits, graph.log_softmax(2))
        images = first[: self._modules.images]
        state: Sequence[Tensor] = first[self._modules.images :]
        for at, column in enumerate(words.T):
            stepped, *state = self._modules.step(column, *images, *state)
            _compare(f"{where}, beside step {at + 1}", stepped.log_softmax(1), logits[:, at])

    def _fed(
        self, words: Tensor, given: Sequence[Tensor], name: str | None = None
    ) -> dict[str, Tensor]:
        names = [name or self._manifest.step.words, *self._manifest.fed]
        return dict(zip(names, (words, *given), strict=True))

    def _run(self, name: str, asked: list[str], fed: dict[str, Tensor]) -> list[Tensor]:
        feeds = {each: np.ascontiguousarray(tensor.numpy()) for each, tensor in fed.items()}
        try:
            found = self._sessions[name].run(asked, feeds)
        except Exception as error:  # onnxruntime raises many, without a base of their own
            sizes = ", ".join(f"{each} {list(tensor.shape)}" for each, tensor in fed.items())
            raise RequestRefused(
                f"{name}: onnxruntime does not run its graph on {sizes:.300}: {error!s:.300}"
            ) from error
        return [torch.from_numpy(each) for each in found]

    def _random(self, *shape: int) -> Tensor:
        return torch.randint(self._words, shape, generator=self._generator)

    def _noisy(self, given: Tensors) -> Tensors:
        return tuple(
            each + _NOISE * torch.randn(each.shape, generator=self._generator)
            if each.is_floating_point()
            else each
            for each in given
        )


def _compare(where: str, module: Tensor, graph: Tensor) -> None:
    if module.shape != graph.shape:
        raise RequestRefused(
            f"{where}: the module gives shape {list(module.shape)}, its graph {list(graph.shape)}"
        )
    if not module.is_floating_point():
        different = float((module != graph).sum())
    else:
        scale = module.abs().clamp(min=1)
        apart = ((module - graph).abs() / scale)[module.isfinite() | graph.isfinite()]
        different = float(apart.max()) if apart.numel() else 0.0
    if not different <= MOST_DIFFERENCE:
        raise RequestRefused(
            f"{where}: the module and its graph differ by {different:.3g}, at most "
            f"{MOST_DIFFERENCE:g} is accepted. Does it draw random numbers, or branch on values?"
        )
