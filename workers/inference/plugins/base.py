"""Base class of plug-ins' captioners, and the description that their factories get."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from service.contract.formats.checkpoint_header import FeatureEncoder
from workers.inference import features
from workers.inference.features import Inputs
from workers.inference.packing import Packed
from workers.inference.vocabulary import CaptionerTokens


@dataclass(frozen=True)
class CaptionerDescription:
    """Description of a file, beside its config and its tensors. `notes`: other metadata."""

    tokens: CaptionerTokens
    encoder: FeatureEncoder
    feature_size: int
    device: torch.device
    notes: Mapping[str, str]


class CaptionerBase:
    """A captioner of image features. `look`, `begin` and `step` are its network; the others are as
    most networks need them.

    `look`    (N, D) features -> (N, …) what later steps need of each image
    `begin`   (n, …) images -> the state before START: a tensor, or a tuple, list or dict of states
    `step`    state, (n) words -> (n, o) hidden rows, and the state after the words
    `output`  (n, o) hidden rows -> (n, V) logits; a `Product` where that is one matrix product
    """

    settles = False  # True needs a Product and `exact`: ranks that are near ties in float64
    walks = False  # True: prefixes by steps, and not by teacher forcing of whole captions
    batch_tokens = 8_192
    together = 128

    def __init__(self, description: CaptionerDescription) -> None:
        self.description = description

    def inputs(self, bundle: Path, images: Sequence[str]) -> Inputs:
        return features.read_features(bundle, images, self.description.encoder)

    def check(self, inputs: Inputs) -> None:
        features.check_features_size(inputs, self.description.feature_size)

    def look(self, inputs: Tensor) -> Tensor:
        return inputs

    def begin(self, images: Tensor) -> Any:
        raise NotImplementedError

    def step(self, state: Any, words: Tensor) -> tuple[Tensor, Any]:
        raise NotImplementedError

    def output(self, hidden: Tensor) -> Tensor:
        """Return `hidden` unchanged, which is right where `step` gives logits."""
        return hidden

    def hidden(self, images: Tensor, captions: Packed) -> Tensor:
        """Teacher forcing by steps. A network that reads a whole caption at once overrides it."""
        state = self.begin(images[captions.image_rows])
        found, before = [], 0
        for words in torch.split(captions.words, captions.counts):
            if len(words) < before:  # the shortest captions have ended
                state = self.select(state, torch.arange(len(words), device=images.device))
            rows, state = self.step(state, words)
            found.append(rows)
            before = len(words)
        return torch.cat(found)

    def select(self, state: Any, rows: Tensor) -> Any:
        """The state of these rows; a row may occur twice."""
        if isinstance(state, Tensor):
            return state[rows]
        if isinstance(state, Mapping):
            return {name: self.select(each, rows) for name, each in state.items()}
        parts = [self.select(each, rows) for each in state]
        if hasattr(state, "_make"):  # a named tuple
            return state._make(parts)
        return type(state)(parts)

    def exact(self) -> "CaptionerBase":
        raise NotImplementedError("a captioner that settles near ties computes them in float64")
