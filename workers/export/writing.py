"""Writes an ONNX bundle of a captioner, and checks it against the captioner's own modules."""

import json
import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator
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
from workers.export import checking, manifests, modules
from workers.export.described import Captioner
from workers.export.modules import Examples, Modules
from workers.inference import pieces

_NEEDED = ("onnx", "onnxscript", "onnxruntime")
_BATCH = torch.export.Dim.DYNAMIC


def check_packages() -> None:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise RequestRefused(
            f"this needs {', '.join(missing)}, not installed here; from a clone of Prescore: "
            "pip install -c deploy/constraints.txt '.[workers,export]'"
        )


def write(
    folder: Path,
    given: Captioner,
    encoder: Encoder | None = None,
    begin: Callable[[str], object] = lambda _: None,
) -> Bundle:
    """`folder` does not exist yet, or is empty. Nothing is written where anything is wrong: raises
    RequestRefused (also: InvalidCheckpoint), which says of which module. `begin` is told each step.
    """
    check_packages()
    if folder.exists() and any(folder.iterdir()):
        raise RequestRefused(f"expected a new or empty folder, found files in {folder}")
    found = modules.of(given)
    examples = modules.examples(found)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".prescore-", dir=folder.resolve().parent) as above:
        made = Path(above) / "bundle"
        made.mkdir(mode=0o755)
        _write(made, given, found, examples, encoder, begin)
        begin("the bundle beside the modules")
        bundle = _judged(made)
        checking.check(made, bundle, found)
        if folder.exists():
            folder.rmdir()
        made.rename(folder)
    return bundle


def _write(
    made: Path,
    given: Captioner,
    found: Modules,
    examples: Examples,
    encoder: Encoder | None,
    begin: Callable[[str], object],
) -> None:
    tokens = manifests.tokens_of(given, found.size)
    manifest = manifests.of(given, found.images, found.states, tokens, encoder)
    images = [each["look"] for each in manifest["images"]]
    first = [each["first"] for each in manifest["state"]]
    before = [each["before"] for each in manifest["state"]]
    after = [each["after"] for each in manifest["state"]]
    begin(manifests.LOOK)
    _export(
        made / manifests.LOOK,
        found.look,
        (examples.inputs,),
        ({0: _BATCH},),
        ([next(name for name in manifest["look"] if name != "file")], [*images, *first]),
    )
    begin(manifests.STEP)
    _export(
        made / manifests.STEP,
        found.step,
        (examples.words, *examples.given),
        ({0: _BATCH}, tuple(_axes(axes) for axes in examples.growing)),
        (["words", *images, *before], ["logits", *after]),
    )
    if found.score is not None:
        begin(manifests.SCORE)
        _export(
            made / manifests.SCORE,
            found.score,
            (examples.captions, *examples.first),
            ({0: _BATCH, 1: _BATCH}, tuple({0: _BATCH} for _ in examples.first)),
            (["words", *images, *before], ["logits"]),
        )
    (made / tokens.file).write_text(tokens.content, "utf-8")
    (made / onnx_bundles.FILE).write_text(json.dumps(manifest, indent=2) + "\n", "utf-8")


def _judged(made: Path) -> Bundle:
    with packages.opened(made) as package:
        bundle = onnx_bundles.judge(package)
        if bundle.manifest.pieces is not None:
            pieces.of_bundle(package, bundle.manifest.pieces)
    return bundle


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
