"""Verifies the tokenizer of an ONNX bundle or of a plug-in's checkpoint, in the sandbox: opens it,
and lets it make pieces.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from service.contract.errors import PrescoreError
from service.contract.formats import onnx_bundles, packages, plugins
from workers.inference import pieces
from workers.inference.pieces import Pieces
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
        tokens = _opened(inputs[0])
        (found,) = tokens.encodings([_TEXT])
        tokens.text(found.ids)
    except PrescoreError as error:
        raise Refused(error.detail) from None
    return {}


def _opened(path: Path) -> Pieces:
    if plugins.is_one_at(path):
        return pieces.of_plugin(plugins.read(path))
    with packages.opened(path) as package:
        said = onnx_bundles.judge(package).manifest.pieces
        assert said is not None
        return pieces.of_bundle(package, said)
