"""What is measured beside ours: the ways of the pre-gen paper's published code, on torch's own `@`,
and gensim's distances.

They run on a part of the images and are scaled up to all, which favours neither side.
"""

import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from case import FEATURES, SIZE, WORDS, Case
from gensim.models import KeyedVectors
from numpy.typing import NDArray
from torch import Tensor

from service.contract.formats.checkpoint_header import EDGE, UNK
from workers.inference import decoding
from workers.inference.decoding import DecodedCaption
from workers.metrics.families.wmd import STOP_WORDS
from workers.metrics.family import ScoringInput

_SCORED, _DECODED, _BATCH, _MOVED = 200, 10, 64, 200


class _Plain:
    """The captioner of the case on torch's own LSTM cell and products."""

    def __init__(self, case: Case) -> None:
        weights = case.model.tensors
        self.weights = weights
        gates = weights["gates.weight"]
        self.cell = torch.nn.LSTM(SIZE, SIZE, batch_first=True, device=case.device)
        with torch.no_grad():
            self.cell.weight_ih_l0.copy_(gates[:SIZE].t())
            self.cell.weight_hh_l0.copy_(gates[SIZE:].t())
            self.cell.bias_ih_l0.copy_(weights["gates.bias"])
            self.cell.bias_hh_l0.zero_()
        assert weights["image.weight"].shape[0] == FEATURES

    def log_softmax(self, features: Tensor, words: Tensor) -> Tensor:
        """(n, D) and padded words (n, t) -> (n, t, V)."""
        unit = features / features.norm(dim=1, keepdim=True)
        start = unit @ self.weights["image.weight"] + self.weights["image.bias"]
        embedded = self.weights["embedding.weight"][words]
        hidden, _ = self.cell(embedded, (start[None], torch.zeros_like(start)[None]))
        logits = hidden @ self.weights["output.weight"] + self.weights["output.bias"]
        return torch.log_softmax(logits, dim=2)


@torch.inference_mode()
def authors_columns(case: Case) -> float:
    """Padded batches in the order of the captions, the whole distribution of each token."""
    plain = _Plain(case)
    images = min(_SCORED, case.references.images)
    part = case.references.part(0, images)
    captions = [part.tokens[a:b] for a, b in pairwise(part.caption_offsets)]
    features = torch.from_numpy(case.features[:images][part.caption_images]).to(case.device)
    began = time.perf_counter()
    for start in range(0, len(captions), _BATCH):
        batch = captions[start : start + _BATCH]
        longest = max(map(len, batch))
        targets = torch.zeros(len(batch), longest, dtype=torch.long)
        for row, caption in enumerate(batch):
            targets[row, : len(caption)] = torch.from_numpy(caption)
        words = torch.cat([torch.zeros(len(batch), 1, dtype=torch.long), targets[:, :-1]], dim=1)
        logp = plain.log_softmax(features[start : start + _BATCH], words.to(case.device))
        own = logp.gather(2, targets.to(case.device)[:, :, None])
        own.cpu(), (logp > own).sum(2).cpu()
    return (time.perf_counter() - began) * case.references.images / images


@torch.inference_mode()
def authors_decoding(
    case: Case, options: decoding.DecodingOptions, ours: list[DecodedCaption]
) -> tuple[float, float]:
    """One image at a time, every hypothesis read from START again for each word.

    Seconds for all images, and the share of captions that are equal to ours.
    """
    plain = _Plain(case)
    images = min(_DECODED, case.references.images)
    began = time.perf_counter()
    found = [_beam(plain, case, image, options) for image in range(images)]
    took = (time.perf_counter() - began) * case.references.images / images
    return took, float(np.mean([a == list(b.words) for a, b in zip(found, ours, strict=False)]))


def gensim_distances(
    task: ScoringInput, words: Sequence[str], vectors: NDArray[np.float32]
) -> tuple[float, NDArray[np.float64]]:
    """Seconds for all captions, and the first ones' distances to their nearest references."""
    keyed = KeyedVectors(vectors.shape[1])
    keyed.add_vectors(list(words), vectors)
    part = min(_MOVED, len(task.captions))
    began = time.perf_counter()
    found = [
        min(
            keyed.wmdistance(_kept(task.captions[place]), _kept(text), norm=False)
            for text in task.references_of(place)
        )
        for place in range(part)
    ]
    return (time.perf_counter() - began) * len(task.captions) / part, np.array(found)


def _kept(text: str) -> list[str]:
    return [word for word in text.split(" ") if word not in STOP_WORDS]


def _beam(plain: _Plain, case: Case, image: int, options: decoding.DecodingOptions) -> list[int]:
    features = torch.from_numpy(case.features[image : image + 1]).to(case.device)
    beam: list[tuple[float, bool, list[int]]] = [(0.0, False, [])]
    while True:
        grown = [hypothesis for hypothesis in beam if hypothesis[1]]
        open_ones = [words for _, complete, words in beam if not complete]
        prefixes = torch.tensor([[EDGE, *words] for words in open_ones], device=case.device)
        logp = plain.log_softmax(features.expand(len(open_ones), -1), prefixes)[:, -1].double()
        logp[:, UNK] = -torch.inf
        if len(open_ones[0]) < options.min_words:
            logp[:, EDGE] = -torch.inf
        scores = [score for score, complete, _ in beam if not complete]
        for score, words, row in zip(scores, open_ones, logp, strict=True):
            for value, word in zip(*(x.tolist() for x in row.topk(options.beam)), strict=True):
                ended = word == EDGE
                longer = words if ended else [*words, word]
                grown.append((score + value, ended or len(longer) == options.max_words, longer))
        beam = sorted(grown, key=lambda hypothesis: -hypothesis[0])[: options.beam]
        if beam[0][1]:
            return beam[0][2]


assert WORDS > UNK
