"""Runs the graphs of a bundle in a child in the sandbox. Tensors stay in the child; here are names
of their rows.
"""

import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from service.contract.errors import SandboxUnavailable, UnusableCheckpoint
from service.contract.formats.onnx_bundles import OnnxBundle
from service.kernel.process_limits import ChildLimits
from workers.sandbox import operations
from workers.sandbox.operations import StayingChild

SHARED_BYTES = 1 << 24  # what is larger goes in parts
SECONDS = 120.0  # of one call: a block of a large model takes ten
TRIAL_SECONDS = 30.0  # of all calls by which a bundle is verified: two images and two words
_OPERATION = "workers.inference.onnx.child:serve_graphs"


Prepare = Callable[[Tensor], Tensor]


class HeldTensors:
    """Tensors that the child keeps, as long as this object is there."""

    def __init__(self, number: int, forgotten: list[int]) -> None:
        self.number = number
        weakref.finalize(self, forgotten.append, number)


@dataclass(frozen=True)
class HeldRows:
    """Some rows of held tensors, which may be selected as those of a tensor are."""

    held: HeldTensors
    rows: Tensor

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, chosen: Tensor | slice) -> "HeldRows":
        return HeldRows(self.held, self.rows[chosen])

    @property
    def device(self) -> torch.device:
        return self.rows.device


class OnnxGraphs:
    """The first call starts the child; the next call after it has ended starts another one, which
    knows none of the rows of the first.
    """

    def __init__(
        self,
        bundle: OnnxBundle,
        *,
        memory: int,
        threads: int,
        seconds: float,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self._words = bundle.size
        self._paths = list(dict.fromkeys(place.path for place in bundle.places.values()))
        self._parameters = _parameters(bundle, self._paths, threads)
        self._limits = ChildLimits(seconds, None, memory)
        self._without = without
        self._threads = threads
        self._until: float | None = None  # calls must end
        self._child: StayingChild | None = None
        self._forgotten: list[int] = []
        self._number = 0

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    @contextmanager
    def on_trial(self) -> Iterator[None]:
        """Let all calls within the block take less time."""
        self._until = time.monotonic() + TRIAL_SECONDS
        try:
            yield
        finally:
            self._until = None

    def close(self) -> None:
        if self._child is not None:
            self._child.close()
            self._child = None

    def look(self, images: Sequence[Tensor], prepare: Prepare = lambda part: part) -> HeldRows:
        """Features or pixels of images, one part of them after the other, each `prepare`d when it
        is looked at. Raises UnusableCheckpoint where onnxruntime does not take the graphs, as all
        calls do where it does not run one.
        """
        child, held = self._running(), self._new()
        for number, part in enumerate(images):
            self._put(child, prepare(part).numpy())
            is_last = number == len(images) - 1
            self._ask({"do": "look", "as": held.number, "part": number, "is_last": is_last})
        return HeldRows(held, torch.arange(sum(map(len, images))))

    def check(self, rows: HeldRows) -> None:
        """Raise UnusableCheckpoint where what is held is not a number."""
        self._ask({"do": "check", "of": rows.held.number})

    def step(self, images: HeldRows, state: HeldRows, words: Tensor) -> tuple[Tensor, HeldRows]:
        """Logits (n, V), and the state after these words."""
        n, held = len(words), self._new()
        request = {"do": "step", "as": held.number, "rows": n}
        request |= {"images": images.held.number, "state": state.held.number}
        self._numbers(images.rows, state.rows, words)
        self._ask(request)
        return self._logits((n, self._words)), HeldRows(held, torch.arange(n))

    def score(self, images: HeldRows, words: Tensor) -> Tensor:
        """Teacher forcing: words (n, L) -> logits (n, L, V)."""
        n, length = words.shape
        request = {"do": "score", "rows": n, "length": length, "images": images.held.number}
        self._numbers(images.rows, *words.T)
        self._ask(request)
        return self._logits((n, length, self._words))

    def _put(self, child: StayingChild, images: NDArray[np.float32]) -> None:
        data = np.ascontiguousarray(images, np.float32).reshape(-1).view(np.uint8)
        shape = list(images.shape)
        for start in range(0, max(1, len(data)), SHARED_BYTES):
            part = data[start : start + SHARED_BYTES]
            np.frombuffer(child.memory, np.uint8, len(part))[:] = part
            self._ask({"do": "put", "start": start, "bytes": len(part), "shape": shape})

    def _new(self) -> HeldTensors:
        self._number += 1
        return HeldTensors(self._number, self._forgotten)

    def _running(self) -> StayingChild:
        if self._child is None or not self._child.is_open:
            self._child = None
            try:
                self._child = StayingChild(
                    _OPERATION,
                    self._paths,
                    self._parameters,
                    shared=SHARED_BYTES,
                    limits=self._limits,
                    without=self._without,
                    threads=self._threads > 1,
                )
            except operations.ConfinementUnavailable as unavailable:
                raise SandboxUnavailable(
                    f"{unavailable}; ONNX is run in a sandbox alone (PRESCORE_SANDBOX)"
                ) from None
            except (operations.InputRefused, operations.ChildStopped) as refused:
                raise _unusable(refused) from None
        return self._child

    def _ask(self, request: Mapping[str, Any]) -> None:
        if self._child is None:
            raise UnusableCheckpoint("the process with its graphs has ended")
        forgotten, self._forgotten[:] = list(self._forgotten), []
        left = None if self._until is None else max(0.0, self._until - time.monotonic())
        try:
            self._child.ask({**request, "forget": forgotten}, left)
        except (operations.InputRefused, operations.ChildStopped) as refused:
            self.close()
            raise _unusable(refused) from None

    def _numbers(self, *lists: Tensor) -> None:
        assert self._child is not None
        numbers = torch.cat([each.reshape(-1) for each in lists]).numpy()
        if numbers.nbytes > SHARED_BYTES:
            raise UnusableCheckpoint(f"{len(numbers):,} words are too many for one call")
        np.frombuffer(self._child.memory, np.int64, len(numbers))[:] = numbers

    def _logits(self, shape: Sequence[int]) -> Tensor:
        """A copy: the child could write on into what is shared."""
        assert self._child is not None
        found = torch.empty(*shape)
        flat = found.reshape(-1).numpy().view(np.uint8)
        for start in range(0, len(flat), SHARED_BYTES):
            if start:
                self._ask({"do": "more", "start": start})
            part = flat[start : start + SHARED_BYTES]
            part[:] = np.frombuffer(self._child.memory, np.uint8, len(part))
        return found


def _unusable(error: Exception) -> UnusableCheckpoint:
    if isinstance(error, operations.ChildStopped):
        return UnusableCheckpoint(f"its graphs cannot be run: the process {error}")
    return UnusableCheckpoint(f"its graphs cannot be run: {error}")


def _parameters(bundle: OnnxBundle, paths: Sequence[Path], threads: int) -> dict[str, Any]:
    return {
        "graphs": {
            name: (paths.index(place.path), place.start, place.size)
            for name, place in bundle.places.items()
        },
        "manifest": bundle.manifest.model_dump(mode="json"),
        "seen": bundle.manifest.seen,
        "vocabulary": bundle.size,
        "threads": threads,
    }
