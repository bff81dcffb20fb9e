"""What is computed already for a checkpoint: columns, and image features of its encoder."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from prescore.models.checkpoints import Cached
from service.contract.formats.digests import DIGEST
from service.contract.plan import planning
from service.contract.plan.tasks import Blob, Task
from service.engine import intake
from service.engine.tables import datasets, runs

Split = tuple[str, str]  # the digest of a bundle, and a name in it


def of(
    connection: Connection,
    checkpoint: str,
    model: Mapping[str, Blob | Task],
    encoder: Mapping[str, Any] | None,
) -> list[Cached]:
    """By splits, in the order of their names. `model`: the inputs by which tasks have it."""
    columns, features = {}, {}
    made = _features(connection, encoder)
    for split in _evaluated(connection, checkpoint):
        for inputs in ({}, {"features": made[split]} if split in made else {}):
            given = {**model, "dataset": Blob(split[0]), **inputs}
            columns[Task("columns", given, {"split": split[1]}).key] = split
    for split, task in made.items():
        features[task.key] = split
    done = intake.done_of(connection, {*columns, *features})
    scored = {split for key, split in columns.items() if key in done}
    encoded = {split for key, split in features.items() if key in done}
    return [
        Cached(dataset=name, columns=split in scored, features=split in encoded)
        for name, split in sorted(_names(connection, scored | encoded))
    ]


def _evaluated(connection: Connection, checkpoint: str) -> Iterator[Split]:
    """The splits on which it was evaluated: columns are looked for there alone."""
    on = sa.select(runs.c.dataset_digest, runs.c.split).where(runs.c.checkpoint == checkpoint)
    for row in connection.execute(on.distinct()):
        yield row.dataset_digest, row.split


def _features(connection: Connection, encoder: Mapping[str, Any] | None) -> dict[Split, Task]:
    """The tasks that compute features of all pictures of a split by this encoder."""
    if encoder is None or not DIGEST.fullmatch(encoder["digest"]):
        return {}
    sha256 = encoder["digest"].removeprefix("sha256:")
    found = {}
    for row in connection.execute(sa.select(datasets.c.digest, datasets.c.splits).distinct()):
        for name, counts in json.loads(row.splits).items():
            if (images := counts["images"]) == counts.get("pictures"):
                task = planning.plan_features(row.digest, name, images, sha256)
                found[row.digest, name] = task
    return found


def _names(connection: Connection, splits: set[Split]) -> Iterator[tuple[str, Split]]:
    """The names of these splits; the same bundle may have several."""
    columns = datasets.c
    for bundle, split in splits:
        of_bundle = sa.select(columns.name, columns.version).where(columns.digest == bundle)
        for row in connection.execute(of_bundle):
            yield f"{row.name}@v{row.version}/{split}", (bundle, split)
