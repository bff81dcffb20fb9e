"""Small captioners and references for tests, from the oracle's random tensors."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from oracles import captioner as oracle
from service.contract.formats.architectures import RecurrentConfig
from service.contract.formats.checkpoint_header import CheckpointDescription, FeatureEncoder
from workers.inference.captioners import ARCHITECTURES, RecurrentCaptioner
from workers.inference.vocabulary import EncodedCaptions

KINDS = [(architecture, cell) for architecture in oracle.ARCHITECTURES for cell in ("gru", "lstm")]
# Each architecture and each cell: for what does not depend on their combination.
REPRESENTATIVES = [("init", "gru"), ("pre", "lstm"), ("par", "gru"), ("merge", "lstm")]
ENCODER = FeatureEncoder(name="random", digest="none")


TORCH_GRUS = [(architecture, "torch_gru") for architecture in oracle.ARCHITECTURES]


def tensors(
    architecture, cell, size=8, features=5, words=50, seed=0, scale=0.5, embedding=None, image=None
):
    rng = np.random.default_rng(seed)
    return oracle.random_tensors(
        architecture, cell, size, features, words, rng, scale, embedding, image
    )


def model(
    architecture: str,
    cell: str,
    arrays: dict[str, NDArray[np.float32]],
    encoder: FeatureEncoder = ENCODER,
) -> RecurrentCaptioner:
    size = len(arrays["gates.bias"]) // (4 if cell == "lstm" else 2)
    words, embedded = arrays["embedding.weight"].shape
    seen = len(arrays["image.bias"])
    config = RecurrentConfig(
        cell=cell,
        size=size,
        feature_size=len(arrays["image.weight"]),
        embedding_size=None if embedded == size else embedded,
        image_size=seen if seen != size and "initial" in arrays else None,
    )
    description = CheckpointDescription(
        architecture,
        config,
        ("<edge>", "<unk>", *(f"w{index}" for index in range(2, words))),
        "blanks",
        encoder,
    )
    weights = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return ARCHITECTURES[architecture](description, weights)


def encoded(references: Sequence[Sequence[Sequence[int]]]) -> EncodedCaptions:
    tokens: list[int] = []
    caption_offsets, image_offsets = [0], [0]
    for captions in references:
        for words in captions:
            tokens += [*words, 0]
            caption_offsets.append(len(tokens))
        image_offsets.append(len(caption_offsets) - 1)
    return EncodedCaptions(np.array(tokens), np.array(caption_offsets), np.array(image_offsets))


def random_references(images, words, rng, longest=9):
    """For each image 1 to 5 captions of 0 to `longest` - 1 words."""
    return [
        [
            rng.integers(1, words, rng.integers(0, longest)).tolist()
            for _ in range(rng.integers(1, 6))
        ]
        for _ in range(images)
    ]


def agreeing_references(architecture, cell, arrays, features, rng):
    """References that begin as the model's greedy caption; some equal it."""
    words = arrays["embedding.weight"].shape[0]
    references = []
    for row in features:
        greedy = oracle.greedy(architecture, cell, arrays, row, max_words=12)
        captions = [greedy]
        for _ in range(rng.integers(1, 5)):
            kept = greedy[: rng.integers(0, len(greedy) + 1)]
            captions.append([*kept, *rng.integers(1, words, rng.integers(0, 4)).tolist()])
        references.append(captions)
    return references


def sentence(rng, words, longest=12):
    """A sentence of 1 to `longest` - 1 of these words."""
    return " ".join(rng.choice(words, rng.integers(1, longest)))


def captions_with_references(words, images, seed):
    """Captions, and 1 to 5 references for each, of which some equal the caption."""
    rng = np.random.default_rng(seed)
    captions = [sentence(rng, words) for _ in range(images)]
    people = [[sentence(rng, words) for _ in range(rng.integers(1, 6))] for _ in range(images)]
    for image in rng.integers(0, images, images // 5):
        people[image][0] = captions[image]
    return captions, people
