"""Verification of packages and tokenizers in the sandbox: each is opened, and tried once."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from service.contract.errors import PrescoreError
from service.contract.formats import onnx_bundles, packages, plugins
from workers.inference import pieces
from workers.inference.pieces import PieceTokens
from workers.sandbox.child import InputRefused


def verify_huggingface(
    inputs: Sequence[Path],
    outputs: Sequence[Path],  # noqa: ARG001  of an operation
    parameters: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Describe a captioner that opens and gives finite numbers. `parameters` may have `memory`: the
    bytes that it may take. Raises InputRefused with what is wrong.
    """
    # Libraries look for these folders when they are imported; nothing may be written anywhere.
    tempfile.tempdir = os.environ["TORCHINDUCTOR_CACHE_DIR"] = "/"
    try:
        return describe_captioner(inputs[0], parameters.get("memory"))
    except PrescoreError as error:
        raise InputRefused(error.detail) from None


def describe_captioner(path: Path, memory: int | None = None) -> Mapping[str, Any]:
    import numpy as np
    import torch

    from workers.inference import generation
    from workers.inference.huggingface import loader

    torch.set_num_threads(1)
    model = loader.read_captioner(path, limit=memory)
    picture = np.zeros((1, *model.preparation.shape), np.uint8)
    generation.generate_captions(model, picture, model.search)
    model.tokens.text(model.tokens.tokenizer.encode("a man rides a horse").ids)
    return {
        "format": "huggingface",
        "architecture": model.judged.family.architecture,
        "model_type": model.judged.family.model_type,
        "vocabulary_size": model.tokens.size,
        "parameters": model.judged.parameters,
        "units": "pieces",
        "inputs": "pixels",
        "image_size": model.judged.family.image_size,
        "beams": model.search.beams,
        "longest": model.search.most,
    }


_TEXT = "a man rides a horse"


def verify_tokenizer(
    inputs: Sequence[Path],
    outputs: Sequence[Path],  # noqa: ARG001  of an operation
    parameters: Mapping[str, Any],  # noqa: ARG001
) -> Mapping[str, Any]:
    """Verify a tokenizer. Raises InputRefused with the fault."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the sandbox has no threads
    try:
        tokens = _opened(inputs[0])
        (found,) = tokens.encodings([_TEXT])
        tokens.text(found.ids)
    except PrescoreError as error:
        raise InputRefused(error.detail) from None
    return {}


def _opened(path: Path) -> PieceTokens:
    if plugins.is_plugin_file(path):
        return pieces.read_plugin_pieces(plugins.read_plugin_header(path))
    with packages.open_package(path) as package:
        said = onnx_bundles.validate_onnx_bundle(package).manifest.pieces
        assert said is not None
        return pieces.read_bundle_pieces(package, said)
