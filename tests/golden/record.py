"""PYTHONPATH=tests python -m golden.record: writes the golden files by what this version answers.

README.md says what they are. Needs the two jars of SPICE in PRESCORE_ASSETS, or in
../shared/assets.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from golden import home as golden
from golden import story, telling
from helpers import encoders, example_files
from helpers.builders import model, tensors
from helpers.fleet import Fleet, bundle, bundle_of
from oracles import captioner as oracle
from workers.inference import checkpoints

JARS = Path(__file__).resolve().parents[3] / "shared" / "assets"
WORDS, SIZE, FEATURE_SIZE = 16, 6, 5
AGREED_IMAGES = 3
LAYER = 1


def make_files(folder: Path) -> dict[str, bytes]:
    """What the story uploads."""
    rng = np.random.default_rng(0)
    rows = {
        count: rng.normal(size=(count, FEATURE_SIZE)).astype(np.float32)
        for count in (story.FEW_IMAGES, story.MANY_IMAGES)
    }
    sayings = bundle_of(story.PEOPLE, training=story.TRAINING)
    found = {
        "sayings.tar": sayings,
        "more-sayings.tar": bundle_of(story.MORE_PEOPLE, training=story.TRAINING),
        "pictures.tar": bundle(24, words=WORDS, feature_size=FEATURE_SIZE),
        "few.tar": bundle_of(story.FEW, rows[story.FEW_IMAGES]),
        "many.tar": bundle_of(story.MANY, rows[story.MANY_IMAGES]),
        "broken.tar": bundle_of(story.FEW).replace(b'"1.jpg"', b'"0.jpg"'),
        "nothing.model": b"this is no checkpoint",
        "few.columns": example_files.columns_of(folder / "columns", story.FEW),
    }
    kinds = [(name, *name.split("-")) for name in story.CHECKPOINTS]
    kinds.append(("last", "merge", "gru"))
    agreeing = story.CHECKPOINTS.index(story.AGREEING)
    found["agreed.tar"] = _agreed(*kinds[agreeing][1:], agreeing)
    for seed, (name, architecture, cell) in enumerate(kinds):
        found[f"{name}.model"] = _checkpoint(folder, architecture, cell, seed, FEATURE_SIZE)
    found["narrow.model"] = _checkpoint(folder, "merge", "gru", 0, FEATURE_SIZE - 1)
    return found


def _checkpoint(folder: Path, architecture: str, cell: str, seed: int, features: int) -> bytes:
    path = folder / "model.safetensors"
    arrays = _arrays(architecture, cell, seed, features)
    checkpoints.write_checkpoint(path, model(architecture, cell, arrays))
    return path.read_bytes()


def _arrays(architecture: str, cell: str, seed: int, features: int) -> dict[str, Any]:
    return tensors(architecture, cell, seed=seed, size=SIZE, features=features, words=WORDS)


def _agreed(architecture: str, cell: str, seed: int) -> bytes:
    """References that begin as this model's greedy captions do, some to the end."""
    rows = np.random.default_rng(1).normal(size=(AGREED_IMAGES, FEATURE_SIZE)).astype(np.float32)
    arrays = _arrays(architecture, cell, seed, FEATURE_SIZE)
    people = {}
    for image, row in enumerate(rows):
        said = [f"w{word}" for word in oracle.greedy(architecture, cell, arrays, row, max_words=6)]
        people[f"{image}.jpg"] = [" ".join(said), " ".join([*said[: image + 1], "w3", "w5"])]
    return bundle_of(people, rows)


def make_assets(home: Path) -> None:
    """Word vectors and a language model, registered by the command."""
    home.mkdir()
    encoders.SIZE, encoders.LAYERS = 8, 2
    encoder = encoders.make(home / "encoder")
    vectors = home / "vectors.txt"
    vectors.write_text("\n".join([*story.VECTORS, ""]), "utf-8")
    environment = {**os.environ, "PRESCORE_HOME": str(home)}
    for asked in (
        ["word-vectors", str(vectors)],
        ["encoder", str(encoder), "--layer", str(LAYER)],
    ):
        command = [sys.executable, "-m", "workers", "assets", "add", *asked]
        subprocess.run(command, check=True, env=environment)
    vectors.unlink()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        home = folder / "home"
        files = make_files(folder)
        make_assets(home)
        posts, answers = telling.tell(
            Fleet(home, PRESCORE_ASSETS=os.environ.get("PRESCORE_ASSETS", str(JARS))),
            Fleet(home, PRESCORE_ASSETS=""),
            files,
        )
        backup = folder / "home.tar"
        golden.make_backup(home, backup)
        golden.write_backup(backup)
        assets = golden.read_assets(home)
    golden.objects.cache_clear()
    kept = golden.objects().keys()
    golden.write_exchanges(
        made_on=golden.kind_of_machine(),
        posts=[{**post, **_content(post, files, kept)} for post in posts],
        answers=answers,
        assets=assets,
    )


def _content(post: dict[str, Any], files: dict[str, bytes], kept: Collection[str]) -> dict:
    """The uploaded file: its digest, or the file itself where it was refused and so not kept."""
    if "file" not in post:
        return {}
    data = files[post["file"]]
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    return {"digest": digest} if digest in kept else {"content": data.decode("latin-1")}


if __name__ == "__main__":
    main()
