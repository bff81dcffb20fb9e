"""Reads a model's tensors from a file that its own program wrote."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from safetensors import SafetensorError, safe_open

from prescore import foreign
from service.contract.errors import ForeignFormat, RequestRefused
from service.contract.formats import safetensors_header
from workers.conversion import sandboxed
from workers.conversion.layers import Arrays
from workers.conversion.sandboxed import Box

_FLOATS = ("F64", "F32", "F16", "BF16")


def read(path: Path, box: Box, wanted: str | None = None) -> tuple[Arrays, Sequence[str]]:
    """Tensors of numbers with a fraction, in float32, and the names of entries that are no tensors.
    What counts (integers) is left out. A PyTorch file is opened in the sandbox. `wanted`: what
    another file is told, where it is not for a checkpoint that tensors are read.
    """
    if not path.is_file():
        raise RequestRefused(f"expected a file with a model's tensors, found nothing at {path}")
    with path.open("rb") as stream:
        found = foreign.of_file(stream, path.stat().st_size)
    if found is not None and found.serves == foreign.STATE_DICT:
        with tempfile.TemporaryDirectory(prefix="prescore-") as folder:
            target = Path(folder) / "model.safetensors"
            left_out = sandboxed.pytorch(path, target, box)
            return _tensors(target), left_out
    refusal = foreign.refusal(found, foreign.CHECKPOINT)
    if wanted is not None and (refusal is not None or found is None):
        raise RequestRefused(f"expected {wanted}, found {_told(found, path)}")
    if refusal is not None:
        raise ForeignFormat(refusal)
    return _tensors(path), ()


def _told(found: foreign.Format | None, path: Path) -> str:
    if found is not None:
        return found.what
    return "a file of no known format" if path.stat().st_size else "an empty file"


def _tensors(path: Path) -> Arrays:
    with path.open("rb") as stream:
        header = safetensors_header.read(stream, path.stat().st_size)
    try:
        with safe_open(path, framework="pt") as file:
            return {
                name: file.get_tensor(name).float().numpy()
                for name, entry in header.tensors.items()
                if entry.dtype in _FLOATS
            }
    except SafetensorError as error:
        raise RequestRefused(f"{path}: the tensors cannot be read: {error}") from None
