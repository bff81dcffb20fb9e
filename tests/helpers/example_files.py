"""The files that openapi/examples upload, with the same bytes everywhere, since the examples
contain their digests. The numbers are computed, not random.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from helpers import synthetic_captions
from helpers.tars import packed
from oracles import captioner
from service.contract.formats import bundles
from service.contract.formats.architectures import RecurrentConfig
from service.contract.formats.checkpoint_header import CheckpointDescription, FeatureEncoder
from workers import tensor_files
from workers.inference import checkpoints, features
from workers.inference.captioners import ARCHITECTURES

FOLDER = Path(__file__).resolve().parents[2] / "openapi" / "examples"
CAPTIONS = FOLDER / "files" / bundles.CAPTIONS
ENCODER = FeatureEncoder(name="example", digest="none")
SIZE, FEATURE_SIZE = 4, 3


def make(folder: Path) -> dict[str, bytes]:
    """The files: name -> content."""
    names = ["harbour.jpg", "market.jpg", "dog.jpg"]
    features.write_features(
        folder / bundles.FEATURES, names, _numbers((3, FEATURE_SIZE), 1), ENCODER
    )
    models = {"model.safetensors": 0, "second.safetensors": 1, "third.safetensors": 2}
    for name, number in models.items():
        checkpoints.write_checkpoint(folder / name, _model(number))
    captions = CAPTIONS.read_bytes()
    said = [line for line in _lines() if line["split"] == "test"]
    broken = captions.replace(b'"image": "market.jpg"', b'"image": "harbour.jpg"')
    return {
        "holiday.tar": packed(
            {
                bundles.CAPTIONS: captions,
                bundles.FEATURES: (folder / bundles.FEATURES).read_bytes(),
            }
        ),
        "broken.tar": packed({bundles.CAPTIONS: broken}),
        "studied.tar": _studied(folder / "studied"),
        "taught.tar": _taught(),
        **{name: (folder / name).read_bytes() for name in models},
        "model.columns.safetensors": columns_of(
            folder / "columns", {item["image"]: item["references"] for item in said}
        ),
    }


def _lines() -> list[dict[str, Any]]:
    return [json.loads(line) for line in CAPTIONS.read_text("utf-8").splitlines()]


def columns_of(path: Path, people: Mapping[str, Sequence[str]]) -> bytes:
    """Of references by image, as a model of somebody's own might think of them."""
    counts = [[len(text.split()) + 1 for text in said] for said in people.values()]
    lengths = [length for each in counts for length in each]
    ranks = np.arange(sum(lengths)) % 3
    tensors = {
        "logp": (-1 - ranks).astype(np.float32),
        "rank": ranks.astype(np.uint16),
        "caption_offsets": np.cumsum([0, *lengths]),
        "image_offsets": np.cumsum([0, *map(len, counts)]),
    }
    names = json.dumps([*people])
    told = {"prescore_columns": "1", "images": names, "tokenizer": "blanks", "model": "our own"}
    tensor_files.write_tensors(path, tensors, told)
    return path.read_bytes()


def _studied(folder: Path) -> bytes:
    """Each picture twice, since a study needs so many."""
    tests = [item for item in _lines() if item["split"] == "test"]
    twice = [{**item, "image": f"{time}-{item['image']}"} for time in (1, 2) for item in tests]
    lines = [json.dumps({k: v for k, v in item.items() if k != "id"}) for item in twice]
    names = [item["image"] for item in twice]
    folder.mkdir()
    path = folder / bundles.FEATURES
    features.write_features(path, names, _numbers((len(names), FEATURE_SIZE), 2), ENCODER)
    captions = "".join(f"{line}\n" for line in lines).encode()
    return packed({bundles.CAPTIONS: captions, bundles.FEATURES: path.read_bytes()})


def _taught() -> bytes:
    """Fifty images, the fewest that a metric learns from."""
    lines = [
        json.dumps({"image": f"{number}.jpg", "split": "train", "references": said})
        for number, said in enumerate(synthetic_captions.images(50))
    ]
    return packed({bundles.CAPTIONS: "".join(f"{line}\n" for line in lines).encode()})


def _model(number: int = 0):
    config = RecurrentConfig(cell="gru", size=SIZE, feature_size=FEATURE_SIZE)
    vocabulary = ("<edge>", "<unk>", *_words())
    shapes = captioner.shapes("merge", "gru", SIZE, FEATURE_SIZE, len(vocabulary))
    weights = {
        name: torch.from_numpy(_numbers(shape, place + 100 * number))
        for place, (name, shape) in enumerate(shapes.items())
    }
    description = CheckpointDescription("merge", config, vocabulary, "blanks", ENCODER)
    return ARCHITECTURES["merge"](description, weights)


def _words():
    """The words that occur twice or more; the model does not know the others."""
    counts = Counter(" ".join(text for line in _lines() for text in line["references"]).split())
    return sorted(word for word, count in counts.items() if count > 1)


def _numbers(shape, seed):
    """Numbers from -1 to 1, without a random generator; 6,001 gives a model with a few hits."""
    steps = np.arange(math.prod(shape)) * 7919 + 104_729 * (6_001 + seed)
    return (steps % 2003 / 1001 - 1).astype(np.float32).reshape(shape)
