"""The plug-in of deploy/guide/plugins-and-sandbox.md, installed in a folder, whole or with other
lines.
"""

import json
import re
import sys
import tomllib
from contextlib import contextmanager

import numpy as np
from safetensors.numpy import save
from tokenizers import Tokenizer, models, pre_tokenizers

from helpers.builders import ENCODER
from helpers.documents import fenced, read
from service.contract.formats.architectures import RecurrentConfig
from service.contract.formats.checkpoint_header import (
    CheckpointDescription,
    dump_checkpoint_metadata,
)
from workers.inference.plugins import registry

PAGE = "deploy/guide/plugins-and-sandbox.md"
NAME = "show-and-tell"


def project():
    (text,) = fenced(read(PAGE), "toml")
    return text


def module():
    return fenced(read(PAGE), "python")[0]


def writing():
    """The page's program that writes a checkpoint."""
    return fenced(read(PAGE), "python")[1]


def write_project(folder):
    folder.mkdir()
    (folder / "pyproject.toml").write_text(project())
    (folder / "acme_captioners.py").write_text(module())


def install(folder, version="1.0", code=None, package="acme-captioners", entry=None):
    """What pip would leave in `folder`: the module and the package's dist-info."""
    told = tomllib.loads(project())["project"]
    (name, factory) = next(iter(told["entry-points"]["prescore.captioners"].items()))
    dist = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    dist.mkdir(parents=True)
    (dist / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n")
    entry = entry or f"{name} = {factory}"
    (dist / "entry_points.txt").write_text(f"[prescore.captioners]\n{entry}\n")
    (folder / "acme_captioners.py").write_text(module() if code is None else code)


def checkpoint(config=None, drop=(), tensors=None, words=50, size=8, features=5, **metadata):
    """A file for the page's plug-in, and the arrays in it by the names of its network."""
    rng = np.random.default_rng(3)
    shapes = {
        "image.weight": (size, features),
        "image.bias": (size,),
        "embedding.weight": (words, size),
        "cell.weight_ih": (3 * size, size),
        "cell.weight_hh": (3 * size, size),
        "cell.bias_ih": (3 * size,),
        "cell.bias_hh": (3 * size,),
        "words.weight": (words, size),
        "words.bias": (words,),
    }
    arrays = {name: rng.normal(0, 0.5, shape).astype("f4") for name, shape in shapes.items()}
    arrays |= tensors or {}
    told = {
        "prescore_plugin": NAME,
        "config": json.dumps(
            {"feature_size": features, "size": size} if config is None else config
        ),
        "encoder": ENCODER.model_dump_json(),
        "tokenizer": "blanks",
        "vocabulary": json.dumps(["<edge>", "<unk>", *(f"w{at}" for at in range(2, words))]),
        **metadata,
    }
    told = {name: text for name, text in told.items() if name not in drop}
    return save(arrays, told), arrays


def of_pieces(**changed):
    """A file whose tokens are pieces: letters, and the ends of captions."""
    vocabulary = {"<unk>": 0, "</s>": 1, **{letter: at for at, letter in enumerate("abcw", 2)}}
    model = models.WordPiece(vocabulary, unk_token="<unk>", continuing_subword_prefix="")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return checkpoint(
        words=6,
        drop=("tokenizer", "vocabulary"),
        **{
            "pieces": '{"size": 6, "start": 1, "end": 1, "longest": 9}',
            "tokenizer.json": tokenizer.to_str(),
            **changed,
        },
    )[0]


def canonical(arrays):
    """The same network in Prescore's own form."""
    size, features = arrays["image.weight"].shape
    ih, hh = arrays["cell.weight_ih"].T, arrays["cell.weight_hh"].T
    bias_ih, bias_hh = arrays["cell.bias_ih"], arrays["cell.bias_hh"]
    gates = slice(0, 2 * size)  # reset, update
    new = slice(2 * size, 3 * size)
    words = len(arrays["words.bias"])
    described = CheckpointDescription(
        "init",
        RecurrentConfig(cell="torch_gru", size=size, feature_size=features, normalize="none"),
        ("<edge>", "<unk>", *(f"w{at}" for at in range(2, words))),
        "blanks",
        ENCODER,
    )
    tensors = {
        "image.weight": arrays["image.weight"].T,
        "image.bias": arrays["image.bias"],
        "embedding.weight": arrays["embedding.weight"],
        "gates.weight": np.concatenate([ih[:, gates], hh[:, gates]]),
        "gates.bias": bias_ih[gates] + bias_hh[gates],
        "candidate.weight": np.concatenate([ih[:, new], hh[:, new]]),
        "candidate.bias": bias_ih[new],
        "candidate.state_bias": bias_hh[new],
        "output.weight": arrays["words.weight"].T,
        "output.bias": arrays["words.bias"],
    }
    held = {name: np.ascontiguousarray(each) for name, each in tensors.items()}
    return save(held, dump_checkpoint_metadata(described))


@contextmanager
def beside(folder):
    """With the packages in `folder`, as in a process that has just started."""
    before = dict(registry._loaded)
    registry._loaded.clear()
    sys.modules.pop("acme_captioners", None)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop("acme_captioners", None)
        registry._loaded.clear()
        registry._loaded.update(before)


def changed(old, new):
    """The page's module with one part replaced."""
    assert len(re.findall(re.escape(old), module())) == 1, old
    return module().replace(old, new)
