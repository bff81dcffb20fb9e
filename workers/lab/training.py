"""Trains captioners: four of them as the pre-gen paper does (deploy/guide/bring-a-model.md)."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from service.contract.formats.architectures import Architecture, list_tensor_shapes
from service.contract.formats.checkpoint_header import CheckpointDescription
from workers.inference import scoring
from workers.inference.captioners import ARCHITECTURES, CanonicalCaptioner, DropoutRates
from workers.inference.packing import pack_captions
from workers.inference.vocabulary import EncodedCaptions
from workers.metrics import pregen
from workers.progress import Progress, ignore_progress


@dataclass(frozen=True)
class TrainingRecipe:
    batch: int
    dropout: DropoutRates
    weight_decay: float
    xavier: bool  # else N(0, 1); both clipped
    clip: float
    learning_rate: float = 1e-3
    epochs: int = 100
    seed: int = 0
    early_stop: bool = True  # else all epochs


PAPER: Mapping[Architecture, TrainingRecipe] = {
    "init": TrainingRecipe(128, DropoutRates(0.0, 0.5, 0.5), 0.0, xavier=True, clip=0.01),
    "pre": TrainingRecipe(32, DropoutRates(0.0, 0.5, 0.5), 0.0, xavier=False, clip=0.1),
    "par": TrainingRecipe(64, DropoutRates(0.5, 0.5, 0.5), 1e-8, xavier=False, clip=0.1),
    "merge": TrainingRecipe(128, DropoutRates(0.0, 0.0, 0.5), 0.0, xavier=False, clip=0.1),
}
_OWN = TrainingRecipe(
    64, DropoutRates(0.0, 0.3, 0.3), 0.0, xavier=True, clip=1.0, learning_rate=2e-3
)
RECIPES: Mapping[Architecture, TrainingRecipe] = {
    **PAPER,
    "soft_attention": _OWN,
    "adaptive_attention": _OWN,
    "bottom_up_top_down": _OWN,
    "transformer": replace(_OWN, dropout=DropoutRates(0.0, 0.1, 0.1), learning_rate=1e-3),
}


@dataclass(frozen=True)
class CaptionedImages:
    """Images and their captions, as ids of the model's vocabulary."""

    features: NDArray[np.float32]  # (N, D), or (N, P, D) of places
    captions: EncodedCaptions


@dataclass(frozen=True)
class TrainingEpoch:
    """The model after `number` epochs (0: untrained)."""

    number: int
    model: CanonicalCaptioner
    loss: float  # mean cross-entropy of the epoch's tokens, nats
    validation_perplexity: float  # geomean, the first caption of each image
    seconds: float


def train_captioner(
    description: CheckpointDescription,
    training: CaptionedImages,
    validation: CaptionedImages,
    recipe: TrainingRecipe | None = None,
    device: torch.device = torch.device("cpu"),
    progress: Progress = ignore_progress,
) -> Iterator[TrainingEpoch]:
    """Yields the untrained model, then one model an epoch; with `early_stop`, ends at the first
    that is worse.

    The last model yielded is then the worse one; the best is the one before. `progress` counts
    the captions of an epoch.
    """
    recipe = recipe or RECIPES[description.architecture]
    generator = torch.Generator().manual_seed(recipe.seed)
    torch.manual_seed(recipe.seed)  # dropout draws from the global generator
    tensors = _initial(description, recipe, generator, device)
    optimiser = torch.optim.Adam(
        list(tensors.values()), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    firsts = validation.captions.subset(validation.captions.image_offsets[:-1])
    first_captions = replace(validation, captions=firsts.captions)
    best = float("inf")
    for number in range(recipe.epochs + 1):
        began = time.perf_counter()
        batches = _batches(training.captions, recipe.batch, generator) if number else []
        loss = _epoch(description, tensors, recipe, optimiser, training, batches, progress)
        frozen = {name: tensor.detach().clone() for name, tensor in tensors.items()}
        model = ARCHITECTURES[description.architecture](description, frozen)
        perplexity = _perplexity(model, first_captions)
        seconds = time.perf_counter() - began
        yield TrainingEpoch(number, model, loss, perplexity, seconds)
        if recipe.early_stop and number and perplexity > best:
            return
        best = min(best, perplexity) if number else best


def _epoch(
    description: CheckpointDescription,
    tensors: Mapping[str, Tensor],
    recipe: TrainingRecipe,
    optimiser: torch.optim.Optimizer,
    training: CaptionedImages,
    batches: list[NDArray[np.int64]],
    progress: Progress,
) -> float:
    total, tokens, seen = 0.0, 0, 0
    build = ARCHITECTURES[description.architecture]
    device = tensors["output.weight"].device
    for batch in batches:
        model = build(description, tensors, recipe.dropout)
        packed = pack_captions(training.captions, batch, device)
        images, rows = np.unique(packed.image_rows.cpu(), return_inverse=True)
        packed = replace(packed, image_rows=torch.from_numpy(rows).to(device))
        targets = torch.from_numpy(training.captions.tokens[packed.places]).to(device)
        looked = model.look(torch.from_numpy(training.features[images]).to(device))
        logits = model.output(model.hidden(looked, packed))
        loss = functional.cross_entropy(logits, targets)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own annotation is missing
        optimiser.step()
        total += float(loss.detach()) * len(targets)
        tokens += len(targets)
        seen += len(batch)
        progress(seen, len(training.captions.lengths))
    return total / tokens if tokens else float("nan")


def _initial(
    description: CheckpointDescription,
    recipe: TrainingRecipe,
    generator: torch.Generator,
    device: torch.device,
) -> dict[str, Tensor]:
    """Weights clipped normal, biases 0, the gates' biases and what normalises 1."""
    tensors = {}
    sizes = list_tensor_shapes(
        description.architecture, description.config, len(description.vocabulary)
    )
    for name, shape in sizes.items():
        if name.endswith(("bias", "norm.weight")):
            tensor = torch.full(shape, float(name.endswith(("gates.bias", "norm.weight"))))
        else:
            scale = (2 / sum(shape)) ** 0.5 if recipe.xavier else 1.0
            tensor = torch.randn(shape, generator=generator) * scale
            tensor = tensor.clamp(-recipe.clip, recipe.clip)
        tensors[name] = tensor.to(device).requires_grad_()
    return tensors


def _batches(
    captions: EncodedCaptions, size: int, generator: torch.Generator
) -> list[NDArray[np.int64]]:
    order = torch.randperm(len(captions.lengths), generator=generator).numpy()
    return [order[start : start + size] for start in range(0, len(order), size)]


def _perplexity(model: CanonicalCaptioner, examples: CaptionedImages) -> float:
    columns = scoring.compute_columns(model, examples.features, examples.captions)
    found = pregen.scores(
        columns.logp,
        columns.rank,
        columns.caption_offsets,
        columns.image_offsets,
        names=["perplexity"],
    )
    return found["perplexity"]
