"""A captioner and references of COCO's size, made up so that decoding looks like decoding."""

from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from helpers.builders import encoded, model, tensors
from workers.inference import decoding
from workers.inference.captioners import RecurrentCaptioner
from workers.inference.columns import ProbabilityColumns
from workers.inference.vocabulary import EncodedCaptions

SIZE, WORDS, FEATURES = 512, 10_000, 2048
GREEDY = decoding.DecodingOptions(beam=1, min_words=0, unk=True)


@dataclass
class Case:
    model: RecurrentCaptioner
    features: NDArray[np.float32]
    references: EncodedCaptions
    device: torch.device
    columns: ProbabilityColumns = field(init=False)  # once they are computed

    def describe(self) -> str:
        references = self.references
        return (
            f"{references.images} images, {len(references.lengths)} captions, "
            f"{len(references.tokens)} tokens, {WORDS} words, LSTM of {SIZE}"
        )


def made_up(images: int, device: torch.device) -> Case:
    rng = np.random.default_rng(0)
    arrays = tensors("init", "lstm", SIZE, FEATURES, WORDS, scale=0.08)
    arrays["embedding.weight"] *= 10
    arrays["image.weight"] *= 20
    features = rng.normal(size=(images, FEATURES)).astype(np.float32)
    arrays["output.bias"][0] = _end_bias(arrays, features[:100])
    captioner = model("init", "lstm", arrays).on(device)
    greedy = decoding.decode_captions(captioner, features, GREEDY)
    references = encoded([_references(caption.words, rng) for caption in greedy])
    return Case(captioner, features, references, device)


def _end_bias(arrays: dict[str, NDArray[np.float32]], features: NDArray[np.float32]) -> float:
    """The bias of END with which greedy captions have about ten words."""
    low, high = -5.0, 15.0
    for _ in range(12):
        middle = (low + high) / 2
        arrays["output.bias"][0] = middle
        found = decoding.decode_captions(model("init", "lstm", arrays), features, GREEDY)
        long = np.mean([len(caption.words) for caption in found]) > 10
        low, high = (middle, high) if long else (low, middle)
    return high


def _references(greedy: tuple[int, ...], rng: np.random.Generator) -> list[list[int]]:
    """Five captions that leave the greedy one after a few words, as COCO's do."""
    captions = []
    for _ in range(5):
        length = max(5, int(rng.normal(10.5, 2.4)))
        shared = list(greedy[: min(rng.geometric(0.5) - 1, length)])
        captions.append([*shared, *rng.integers(2, WORDS, length - len(shared)).tolist()])
    return captions
