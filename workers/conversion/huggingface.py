"""Verifies a folder that transformers has saved, in the sandbox: opens it, and runs it once."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from service.contract.errors import PrescoreError
from workers.sandbox.child import Refused


def check(
    inputs: Sequence[Path],
    outputs: Sequence[Path],  # noqa: ARG001  of an operation
    parameters: Mapping[str, Any],
) -> Mapping[str, Any]:
    """What a captioner is that opens and gives finite numbers. `parameters` may have `memory`: the
    bytes that it may take. Raises Refused with what is wrong.
    """
    # Libraries look for these folders when they are imported; nothing may be written anywhere.
    tempfile.tempdir = os.environ["TORCHINDUCTOR_CACHE_DIR"] = "/"
    try:
        return describe(inputs[0], parameters.get("memory"))
    except PrescoreError as error:
        raise Refused(error.detail) from None


def describe(path: Path, memory: int | None = None) -> Mapping[str, Any]:
    import numpy as np
    import torch

    from workers.inference import generation
    from workers.inference.huggingface import reading

    torch.set_num_threads(1)
    model = reading.read(path, limit=memory)
    picture = np.zeros((1, *model.preparation.shape), np.uint8)
    generation.decode(model, picture, model.search)
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
