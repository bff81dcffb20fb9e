"""Writes an ONNX bundle of a captioner, and checks it against the captioner's own modules."""

import json
import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from torch import nn

from service.contract.errors import RequestRefused
from service.contract.formats import onnx_bundles, packages
from service.contract.formats.checkpoint_header import Encoder
from service.contract.formats.onnx_bundles import Bundle
from workers.export import checking, modules
from workers.export.described import Captioner
from workers.export.modules import Examples, Modules

_NEEDED = ("onnx", "onnxscript", "onnxruntime")
_LOOK, _STEP, _SCORE, _WORDS = "look.onnx", "step.onnx", "score.onnx", "vocabulary.json"
_BATCH = torch.export.Dim.DYNAMIC


def check_packages() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise RequestRefused(
            f"this needs {', '.join(missing)}, not installed here; from a clone of Prescore: "
            "pip install -c deploy/constraints.txt '.[workers,export]'"
        )


def write(folder: Path, given: Captioner, encoder: Encoder | None = None) -> Bundle:
    """`folder` does not exist yet, or is empty. Nothing is written where anything is wrong: raises
    RequestRefused (also: InvalidCheckpoint), which says of which module.
    """
    check_packages()
    if folder.exists() and any(folder.iterdir()):
        raise RequestRefused(f"expected a new or empty folder, found files in {folder}")
    found = modules.of(given)
    examples = modules.examples(found, given)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".prescore-", dir=folder.resolve().parent) as above:
        made = Path(above) / "bundle"
        made.mkdir(mode=0o755)
        _write(made, given, found, examples, encoder)
        with packages.opened(made) as package:
            bundle = onnx_bundles.judge(package)
        checking.check(made, bundle, found)
        if folder.exists():
            folder.rmdir()
        made.rename(folder)
    return bundle


def _write(
    made: Path, given: Captioner, found: Modules, examples: Examples, encoder: Encoder | None
) -> None:
    manifest = _manifest(given, found, encoder)
    images = [each["look"] for each in manifest["images"]]
    first = [each["first"] for each in manifest["state"]]
    before = [each["before"] for each in manifest["state"]]
    after = [each["after"] for each in manifest["state"]]
    _export(
        made / _LOOK,
        found.look,
        (examples.features,),
        ({0: _BATCH},),
        (["features"], [*images, *first]),
    )
    _export(
        made / _STEP,
        found.step,
        (examples.words, *examples.given),
        ({0: _BATCH}, tuple(_axes(axes) for axes in examples.growing)),
        (["words", *images, *before], ["logits", *after]),
    )
    if found.score is not None:
        _export(
            made / _SCORE,
            found.score,
            (examples.captions, *examples.first),
            ({0: _BATCH, 1: _BATCH}, tuple({0: _BATCH} for _ in examples.first)),
            (["words", *images, *before], ["logits"]),
        )
    (made / _WORDS).write_text(json.dumps(list(given.words), ensure_ascii=False), "utf-8")
    (made / onnx_bundles.FILE).write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")


def _axes(growing: tuple[int, ...]) -> dict[int, Any]:
    return dict.fromkeys((0, *growing), _BATCH)


def _export(
    path: Path,
    module: nn.Module,
    inputs: tuple[torch.Tensor, ...],
    dynamic: tuple[Any, ...],
    names: tuple[list[str], list[str]],
) -> None:
    try:
        with _quiet():
            program = torch.onnx.export(
                module,
                inputs,
                dynamo=True,
                dynamic_shapes=dynamic,
                input_names=names[0],
                output_names=names[1],
                verbose=False,
            )
        assert program is not None
        program.save(path, external_data=False)
    except Exception as error:  # torch and onnx raise many, without a base of their own
        why = str(error.__cause__ or error).split("\n\n")[0]
        raise RequestRefused(
            f"{path.stem}: torch.onnx.export does not take the module: {why:.500}"
        ) from error


@contextmanager
def _quiet() -> Iterator[None]:
    """Torch warns of what it does itself, and that torchvision is absent."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


def _manifest(given: Captioner, found: Modules, encoder: Encoder | None) -> dict[str, Any]:
    images = [f"image_{at}" for at in range(found.images)]
    states = [f"state_{at}" for at in range(found.states)]
    score = None if found.score is None else {"file": _SCORE, "words": "words", "logits": "logits"}
    return {
        "prescore": "1",
        "format": "onnx",
        "feature_size": given.feature_size,
        "look": {"file": _LOOK, "features": "features"},
        "step": {"file": _STEP, "words": "words", "logits": "logits"},
        "score": score,
        "images": [{"look": name, "step": name} for name in images],
        "state": [
            {"first": f"{name}_first", "before": name, "after": f"{name}_after"} for name in states
        ],
        "vocabulary": {
            "file": _WORDS,
            **{name: _id(given, name) for name in ("start", "end", "unknown")},
        },
        "tokenizer": given.tokenizer,
        "encoder": _encoder(given.encoder, encoder),
    }


def _id(given: Captioner, name: str) -> int:
    word = getattr(given, name)
    if word not in given.words:
        raise RequestRefused(f"{name}: the words have no {word!r:.60}")
    return list(given.words).index(word)


def _encoder(own: Mapping[str, str] | None, of_dataset: Encoder | None) -> Mapping[str, str]:
    if of_dataset is not None:
        return {"name": of_dataset.name, "digest": of_dataset.digest}
    if own is None:
        raise RequestRefused(
            "expected --dataset with the bundle whose features the model was trained on, or "
            "`encoder` with `name` and `digest` in what the function returns"
        )
    return own
