"""Checkpoints of small captioners that were trained on shapes."""

from collections.abc import Iterator
from pathlib import Path

from workers.lab import training_runs


def checkpoints(
    folder: Path,
    seed: int,
    architecture: str = "merge",
    size: int = 64,
    batch: int | None = None,
) -> Iterator[Path]:
    """Of one training on the dataset in `folder`: before it and after each of six epochs."""
    run = training_runs.prepare_training(
        folder,
        architecture=architecture,
        sizes={"cell": "gru", "size": size},
        at_least=5,
        splits=("train", "val"),
        device="cpu",
    )
    for epoch in run.train(epochs=6, batch=batch, seed=seed):
        yield training_runs.save_epoch(folder, epoch)
