"""A training run from a bundle on disk to checkpoints on disk."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from pydantic import ValidationError

from service.contract.errors import InvalidSetting, UnusableDataset
from service.contract.formats import bundles
from service.contract.formats.checkpoint_header import ARCHITECTURES, Config, Description
from service.contract.formats.words import Tokenizer
from service.contract.wording import told
from workers.inference import checkpoints, devices, features, vocabulary
from workers.lab import training
from workers.lab.training import Epoch, Examples
from workers.progress import Progress, silent

TOKENIZER: Tokenizer = "karpathy"


@dataclass(frozen=True)
class Run:
    description: Description
    training: Examples
    validation: Examples
    device: torch.device

    def train(
        self,
        *,
        epochs: int,
        batch: int | None,
        seed: int,
        progress: Progress = silent,
    ) -> Iterator[Epoch]:
        recipe = training.PAPER[self.description.architecture]
        recipe = replace(recipe, epochs=epochs, seed=seed, batch=batch or recipe.batch)
        return training.train(
            self.description,
            self.training,
            self.validation,
            recipe,
            device=self.device,
            progress=progress,
        )


def prepare(
    bundle: Path,
    *,
    architecture: str,
    cell: str,
    size: int,
    at_least: int,
    splits: tuple[str, str],
    device: str,
) -> Run:
    """Reads both splits; the vocabulary is the training split's."""
    header = bundles.read_features_header(bundle)
    if header is None:
        raise UnusableDataset(f"expected {bundles.FEATURES} in {bundle}: training needs features")
    chosen = next((name for name in ARCHITECTURES if name == architecture), None)
    if chosen is None:
        raise InvalidSetting(
            f"--architecture: expected {', '.join(ARCHITECTURES)}, found {architecture!r}"
        )
    try:
        config = Config.model_validate({"cell": cell, "size": size, "feature_size": header.size})
    except ValidationError as error:
        first = error.errors()[0]
        raise InvalidSetting(f"--{first['loc'][0]}: {told(first)}") from None
    items = {split: bundles.read_split(bundle, split) for split in splits}
    captions = (caption for item in items[splits[0]] for caption in item.references)
    words = vocabulary.build(captions, TOKENIZER, at_least)
    examples = [
        Examples(
            features.read(bundle, [item.image for item in items[split]], header.encoder),
            vocabulary.encode([item.references for item in items[split]], words, TOKENIZER),
        )
        for split in splits
    ]
    description = Description(chosen, config, words, TOKENIZER, header.encoder)
    return Run(description, examples[0], examples[1], devices.resolve(device))


def save(folder: Path, epoch: Epoch) -> Path:
    path = folder / f"epoch-{epoch.number:02}.safetensors"
    checkpoints.write(path, epoch.model)
    return path
