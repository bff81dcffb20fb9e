"""The files that openapi/examples upload, with the same bytes everywhere, since the examples
contain their digests. The numbers are computed, not random.
"""

import io
import json
import math
import tarfile
from collections import Counter
from pathlib import Path

import numpy as np
import torch

from helpers import synthetic_captions
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
    broken = captions.replace(b'"image": "market.jpg"', b'"image": "harbour.jpg"')
    return {
        "holiday.tar": _tar(captions, (folder / bundles.FEATURES).read_bytes()),
        "broken.tar": _tar(broken),
        "studied.tar": _studied(folder / "studied"),
        "taught.tar": _taught(),
        **{name: (folder / name).read_bytes() for name in models},
        "model.columns.safetensors": _columns(folder / "columns"),
    }


def _columns(path: Path) -> bytes:
    """Of the test split, as a model of somebody's own might think of it."""
    lines = [json.loads(line) for line in CAPTIONS.read_text("utf-8").splitlines()]
    items = [line for line in lines if line["split"] == "test"]
    counts = [[len(text.split()) + 1 for text in item["references"]] for item in items]
    lengths = [length for each in counts for length in each]
    ranks = np.arange(sum(lengths)) % 3
    tensors = {
        "logp": (-1 - ranks).astype(np.float32),
        "rank": ranks.astype(np.uint16),
        "caption_offsets": np.cumsum([0, *lengths]),
        "image_offsets": np.cumsum([0, *map(len, counts)]),
    }
    names = json.dumps([item["image"] for item in items])
    told = {"prescore_columns": "1", "images": names, "tokenizer": "blanks", "model": "our own"}
    tensor_files.write_tensors(path, tensors, told)
    return path.read_bytes()


def _studied(folder: Path) -> bytes:
    """Each picture twice, since a study needs so many."""
    items = [json.loads(line) for line in CAPTIONS.read_text("utf-8").splitlines()]
    tests = [item for item in items if item["split"] == "test"]
    twice = [{**item, "image": f"{time}-{item['image']}"} for time in (1, 2) for item in tests]
    lines = [json.dumps({k: v for k, v in item.items() if k != "id"}) for item in twice]
    names = [item["image"] for item in twice]
    folder.mkdir()
    path = folder / bundles.FEATURES
    features.write_features(path, names, _numbers((len(names), FEATURE_SIZE), 2), ENCODER)
    return _tar("".join(f"{line}\n" for line in lines).encode(), path.read_bytes())


def _taught() -> bytes:
    """Fifty images, the fewest that a metric learns from."""
    lines = [
        json.dumps({"image": f"{number}.jpg", "split": "train", "references": said})
        for number, said in enumerate(synthetic_captions.images(50))
    ]
    return _tar("".join(f"{line}\n" for line in lines).encode())


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
    lines = [json.loads(line) for line in CAPTIONS.read_text("utf-8").splitlines()]
    counts = Counter(" ".join(text for line in lines for text in line["references"]).split())
    return sorted(word for word, count in counts.items() if count > 1)


def _numbers(shape, seed):
    """Numbers from -1 to 1, without a random generator; 6,001 gives a model with a few hits."""
    steps = np.arange(math.prod(shape)) * 7919 + 104_729 * (6_001 + seed)
    return (steps % 2003 / 1001 - 1).astype(np.float32).reshape(shape)


def _tar(captions: bytes, rows: bytes | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in ((bundles.CAPTIONS, captions), (bundles.FEATURES, rows)):
            if content is not None:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
