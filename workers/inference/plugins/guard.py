"""Guard of a plug-in's captioner: checks all that it answers for the engine."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from service.contract.errors import PluginFailed
from service.contract.formats.checkpoint_header import FeatureEncoder
from service.contract.formats.plugins import InstalledPlugin
from workers.inference.captioners import Captioner, CaptionerState, GenerationOptions
from workers.inference.captioners.protocol import OutputLayer
from workers.inference.devices import Product
from workers.inference.features import Inputs
from workers.inference.packing import Packed
from workers.inference.plugins import registry
from workers.inference.vocabulary import CaptionerTokens

_MOST_TOKENS, _MOST_IMAGES = 65_536, 1024


class GuardedCaptioner:
    """Raises PluginFailed where the plug-in raises, takes too long, or answers with other shapes
    than the protocol's or with what are no numbers.
    """

    def __init__(
        self,
        plugin: InstalledPlugin,
        captioner: Any,
        tokens: CaptionerTokens,
        encoder: FeatureEncoder | None,
        device: torch.device,
    ) -> None:
        self.plugin = plugin
        self.encoder = encoder
        self.tokens = tokens
        self.device = device
        self._own = captioner
        self.settles = self._bool("settles")
        self.walks = self._bool("walks")
        self.search: GenerationOptions | None = None
        self.batch_tokens = self._count("batch_tokens", _MOST_TOKENS)
        self.together = self._count("together", _MOST_IMAGES)
        self.output = self._output()

    def inputs(self, bundle: Path, images: Sequence[str]) -> Inputs:
        rows = _PluginInputs(self.plugin, self._call("inputs", bundle, images))
        self._expect(len(rows) == len(images), "inputs", f"{len(images)} rows", len(rows))
        return rows

    def check(self, inputs: Inputs) -> None:
        self._call("check", inputs)

    def look(self, inputs: Tensor) -> Tensor:
        return self._rows("look", len(inputs), self._call("look", inputs))

    def hidden(self, images: Tensor, captions: Packed) -> Tensor:
        found = self._call("hidden", images, captions)
        return self._hidden("hidden", len(captions.words), found)

    def begin(self, images: Tensor) -> CaptionerState:
        return self._call("begin", images)

    def step(self, state: CaptionerState, words: Tensor) -> tuple[Tensor, CaptionerState]:
        found = self._call("step", state, words)
        is_pair = isinstance(found, tuple) and len(found) == 2
        self._expect(is_pair, "step", "hidden rows and the next state", _kind(found))
        return self._hidden("step", len(words), found[0]), found[1]

    def select(self, state: CaptionerState, rows: Tensor) -> CaptionerState:
        return self._call("select", state, rows)

    def exact(self) -> Captioner:
        found = self._call("exact")
        return GuardedCaptioner(self.plugin, found, self.tokens, self.encoder, self.device)

    def _output(self) -> OutputLayer:
        """Its own Product, whose shape is looked at once; else a function that looks at all that
        it answers.
        """
        own = self._get("output")
        if isinstance(own, Product):
            words = own.weight.shape[1]
            self._expect(words == self.tokens.size, "output", f"{self.tokens.size} words", words)
            return own
        self._expect(callable(own), "output", "a function", _kind(own))
        self._expect(not self.settles, "output", "a Product, since `settles`", _kind(own))
        return self._logits

    def _logits(self, hidden: Tensor) -> Tensor:
        with registry.translate_failures(self.plugin, "output"):
            found = self._own.output(hidden)
        expected = (len(hidden), self.tokens.size)
        logits = self._rows("output", len(hidden), found)
        self._expect(logits.shape == expected, "output", list(expected), list(logits.shape))
        if not bool((logits < math.inf).all()):
            raise self._failure("output", "logits that are numbers or -inf", "NaN or inf")
        return logits

    def _hidden(self, name: str, rows: int, found: Any) -> Tensor:
        hidden = self._rows(name, rows, found)
        self._expect(hidden.ndim == 2, name, "two dimensions", hidden.ndim)
        if isinstance(self.output, Product) and not bool(torch.isfinite(hidden).all()):
            raise self._failure(name, "finite numbers", "NaN or inf")
        return hidden

    def _rows(self, name: str, rows: int, found: Any) -> Tensor:
        if not isinstance(found, Tensor):
            raise self._failure(name, "a tensor", _kind(found))
        shape = list(found.shape)
        self._expect(found.ndim > 0 and shape[0] == rows, name, f"{rows} rows", f"shape {shape}")
        self._expect(found.device == self.device, name, f"a tensor on {self.device}", found.device)
        self._expect(found.is_floating_point(), name, "a floating point tensor", found.dtype)
        return found if found.dtype == torch.float64 else found.float()

    def _call(self, name: str, *given: Any) -> Any:
        with registry.translate_failures(self.plugin, name):
            return getattr(self._own, name)(*given)

    def _get(self, name: str) -> Any:
        with registry.translate_failures(self.plugin, name):
            return getattr(self._own, name)

    def _bool(self, name: Literal["settles", "walks"]) -> bool:
        found = self._get(name)
        self._expect(isinstance(found, bool), name, "True or False", _kind(found))
        return bool(found)

    def _count(self, name: str, most: int) -> int:
        found = self._get(name)
        right = type(found) is int and 1 <= found <= most
        self._expect(right, name, f"a number from 1 to {most}", f"{found!r:.60}")
        return int(found)

    def _expect(self, right: bool, where: str, expected: object, found: object) -> None:  # noqa: FBT001
        if not right:
            raise self._failure(where, expected, found)

    def _failure(self, where: str, expected: object, found: object) -> PluginFailed:
        return PluginFailed(
            f"the plug-in {self.plugin}: expected {expected} of `{where}`, found {found!s:.200}"
        )


@dataclass(frozen=True)
class _PluginInputs:
    """A plug-in's inputs, which may be read when they are asked for."""

    plugin: InstalledPlugin
    own: Inputs

    def __len__(self) -> int:
        with registry.translate_failures(self.plugin, "inputs"):
            return len(self.own)

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> NDArray[Any]:
        with registry.translate_failures(self.plugin, "inputs"):
            return np.asarray(self.own[rows])


def _kind(value: Any) -> str:
    return type(value).__name__
