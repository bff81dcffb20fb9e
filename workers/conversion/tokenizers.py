"""Verifies the tokenizer of an ONNX bundle, in the sandbox: opens it, and lets it make pieces."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from service.contract.errors import PrescoreError
from service.contract.formats import onnx_bundles, packages
from workers.inference import pieces
from workers.sandbox.child import Refused

_TEXT = "a man rides a horse"


def check(
    inputs: Sequence[Path],
    outputs: Sequence[Path],  # noqa: ARG001  of an operation
    parameters: Mapping[str, Any],  # noqa: ARG001
) -> Mapping[str, Any]:
    """Raises Refused with what is wrong."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # the sandbox has no threads
    try:
        with packages.opened(inputs[0]) as package:
            said = onnx_bundles.judge(package).manifest.pieces
            assert said is not None
            tokens = pieces.of_bundle(package, said)
        (found,) = tokens.encodings([_TEXT])
        tokens.text(found.ids)
    except PrescoreError as error:
        raise Refused(error.detail) from None
    return {}
