"""A training run from a bundle on disk to checkpoints on disk."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError

from service.contract.errors import InvalidSetting, UnusableDataset
from service.contract.formats import bundles
from service.contract.formats.architectures import (
    ARCHITECTURE_CONFIGS,
    ARCHITECTURES,
    AnyConfig,
    Architecture,
)
from service.contract.formats.bundles import FeaturesHeader
from service.contract.formats.bundles.features import INPUT_TEXTS
from service.contract.formats.checkpoint_header import CheckpointDescription
from service.contract.formats.vocabularies import ModelTokenizer
from service.contract.wording import describe_field_error
from workers.inference import checkpoints, devices, features, vocabulary
from workers.lab import training
from workers.lab.training import CaptionedImages, TrainingEpoch
from workers.progress import Progress, ignore_progress

TOKENIZER: ModelTokenizer = "karpathy"
_USUAL = {"cell": "gru", "layers": 2, "heads": 4}


@dataclass(frozen=True)
class RecipeRun:
    description: CheckpointDescription
    training: CaptionedImages
    validation: CaptionedImages
    device: torch.device

    def train(
        self,
        *,
        epochs: int,
        batch: int | None,
        seed: int,
        progress: Progress = ignore_progress,
    ) -> Iterator[TrainingEpoch]:
        recipe = training.RECIPES[self.description.architecture]
        recipe = replace(recipe, epochs=epochs, seed=seed, batch=batch or recipe.batch)
        return training.train_captioner(
            self.description,
            self.training,
            self.validation,
            recipe,
            device=self.device,
            progress=progress,
        )


def prepare_training(
    bundle: Path,
    *,
    architecture: str,
    sizes: Mapping[str, Any],
    at_least: int,
    splits: tuple[str, str],
    device: str,
) -> RecipeRun:
    """Reads both splits; the vocabulary is the training split's. `sizes`: what the config says, and
    None for what it may leave out.
    """
    header = bundles.read_features_header(bundle)
    if header is None:
        raise UnusableDataset(f"expected {bundles.FEATURES} in {bundle}: training needs features")
    chosen = next((name for name in ARCHITECTURES if name == architecture), None)
    if chosen is None:
        raise InvalidSetting(
            f"--architecture: expected {', '.join(ARCHITECTURES)}, found {architecture!r}"
        )
    config = _config(chosen, header, sizes)
    items = {split: bundles.read_split(bundle, split) for split in splits}
    captions = (caption for item in items[splits[0]] for caption in item.references)
    words = vocabulary.build_vocabulary(captions, TOKENIZER, at_least)
    examples = [
        CaptionedImages(
            features.read_features(
                bundle, [item.image for item in items[split]], header.encoder, header.inputs
            )[:],
            vocabulary.encode_captions(
                [item.references for item in items[split]], words, TOKENIZER
            ),
        )
        for split in splits
    ]
    description = CheckpointDescription(chosen, config, words, TOKENIZER, header.encoder)
    return RecipeRun(description, examples[0], examples[1], devices.resolve_device(device))


def _config(chosen: Architecture, header: FeaturesHeader, sizes: Mapping[str, Any]) -> AnyConfig:
    model = ARCHITECTURE_CONFIGS[chosen]
    usual = {name: size for name, size in _USUAL.items() if name in model.model_fields}
    given = {name: size for name, size in sizes.items() if size is not None}
    for name in given.keys() - model.model_fields.keys():
        raise InvalidSetting(f"--{name}: {chosen} has none; leave it out")
    if ("inputs" in model.model_fields) != (header.inputs != "features"):
        takes, advice = INPUT_TEXTS["features"], ""
        if header.inputs == "features":
            takes = f"{INPUT_TEXTS['grid']} or {INPUT_TEXTS['regions']}"
            advice = ": `prescore lab shapes --places grid` makes some"
        raise UnusableDataset(
            f"{chosen} takes {takes}, and the dataset has {INPUT_TEXTS[header.inputs]}{advice}"
        )
    places = {} if header.inputs == "features" else {"inputs": header.inputs}
    try:
        return model.model_validate({**usual, **given, **places, "feature_size": header.size})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "heads"
        raise InvalidSetting(f"--{name}: {describe_field_error(first)}") from None


def save_epoch(folder: Path, epoch: TrainingEpoch) -> Path:
    path = folder / f"epoch-{epoch.number:02}.safetensors"
    checkpoints.write_checkpoint(path, epoch.model)
    return path
