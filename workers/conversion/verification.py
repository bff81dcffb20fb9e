"""Verification of packages in the sandbox: each is opened, and tried once."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prescore import model_types
from service.contract.errors import PrescoreError
from service.contract.formats import packages
from service.contract.formats.huggingface import adapters
from workers.sandbox.child import InputRefused

_CHUNK = 1 << 20


def verify_huggingface(
    inputs: Sequence[Path],
    outputs: Sequence[Path],  # noqa: ARG001  of an operation
    parameters: Mapping[str, Any],
) -> Mapping[str, Any]:
    """Describe a captioner that opens and gives finite numbers. `parameters` may have `memory`, the
    bytes that it may take, and `model_types`, the setting. Raises InputRefused with what is wrong.
    """
    os.environ[model_types.ADMITTING] = parameters.get("model_types", "")
    try:
        return describe_captioner(inputs[0], parameters.get("memory"))
    except PrescoreError as error:
        raise InputRefused(error.detail) from None


_TEXT = "a man rides a horse"


def describe_captioner(path: Path, memory: int | None = None) -> Mapping[str, Any]:
    import torch

    from workers.inference import generation
    from workers.inference.huggingface import loader

    torch.set_num_threads(1)
    model = loader.read_captioner(path, limit=memory, is_confined=True)
    generation.generate_captions(model, model.draw_sample(), model.search)
    model.tokens.text(model.tokens.encode([[_TEXT]]).tokens[:-1].tolist())
    return {
        "format": "huggingface",
        "architecture": model.judged.architecture,
        "vocabulary_size": model.tokens.size,
        "parameters": model.judged.parameters,
        "units": "pieces",
        "inputs": "pixels",
        "beams": model.search.beams,
        "longest": model.search.most,
    }


def verify_adapter(
    inputs: Sequence[Path],
    outputs: Sequence[Path],  # noqa: ARG001  of an operation
    parameters: Mapping[str, Any],  # noqa: ARG001
) -> Mapping[str, Any]:
    """Read all bytes of an adapter, which may be compressed. Raises InputRefused with the fault."""
    try:
        with packages.open_package(inputs[0]) as package:
            adapters.validate_adapter(package)
            with package.file(adapters.ADAPTER_WEIGHTS).open() as stream:
                while stream.read(_CHUNK):
                    pass
    except PrescoreError as error:
        raise InputRefused(error.detail) from None
    return {}
