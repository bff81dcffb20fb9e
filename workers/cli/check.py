"""`prescore check`: check a checkpoint or a dataset bundle."""

from pathlib import Path
from typing import Annotated, Any

import typer

from service.contract.errors import RequestRefused
from service.contract.formats import checkpoint_header, foreign
from service.contract.formats.bundles import judging
from workers.cli.console import AsJson, errors, show, show_json


def check(
    path: Annotated[Path, typer.Argument(help="A checkpoint (.safetensors) or a dataset bundle.")],
    as_json: AsJson = False,
) -> None:
    """Check a checkpoint or a dataset bundle: show its content, or what is wrong.

    Exit 0: it is right. Exit 1: it is wrong. Needs no service and no GPU.

        prescore check model.safetensors
        prescore check flickr8k/
    """
    with errors():
        facts = _facts(path)
    if as_json:
        show_json(facts)
    else:
        show(*(f"{name + ':':18} {value}" for name, value in facts.items()))


def _facts(path: Path) -> dict[str, Any]:
    """What a file or a folder holds, judged by its content and not by its name."""
    found = foreign.of_path(path)
    serves = None if found is None else found.serves
    if serves == foreign.CHECKPOINT or (found is None and path.suffix == ".safetensors"):
        return _checkpoint_facts(path)
    if found is None or serves == foreign.BUNDLE:
        return bundle_facts(path)
    if serves == foreign.CAPTIONS:
        raise RequestRefused(f"{path} is {found.what}, perhaps of captions: {found.do}")
    expected = f"{foreign.CHECKPOINT}, or {foreign.BUNDLE}"
    raise RequestRefused(f"expected {expected}; found {found.what}: {found.do}")


def _checkpoint_facts(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise RequestRefused(f"expected a checkpoint, found nothing at {path}")
    header = checkpoint_header.read(path)
    checkpoint_header.check_new(header)
    description = header.description
    return {
        "architecture": description.architecture,
        "cell": description.config.cell,
        "size": description.config.size,
        "feature_size": description.config.feature_size,
        "normalize": description.config.normalize,
        "vocabulary_size": len(description.vocabulary),
        "tokenizer": description.tokenizer,
        "encoder": str(description.encoder),
        "parameters": header.parameters,
    }


def bundle_facts(path: Path) -> dict[str, Any]:
    found = judging.judge(path)
    features = found.features
    return {
        "splits": found.splits,
        "features": None
        if features is None
        else {
            "images": len(features.ids),
            "size": features.size,
            "encoder": str(features.encoder),
        },
    }
