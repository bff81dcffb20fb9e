"""Reads a model's tensors from a safetensors file that any program wrote."""

from pathlib import Path

from safetensors import SafetensorError, safe_open

from service.contract.errors import ForeignFormat, RequestRefused
from service.contract.formats import foreign, safetensors_header
from workers.conversion.layers import Arrays

_FLOATS = ("F64", "F32", "F16", "BF16")


def read(path: Path) -> Arrays:
    """Its tensors of numbers with a fraction, in float32; what counts (integers) is left out."""
    if not path.is_file():
        raise RequestRefused(f"expected a file with a model's tensors, found nothing at {path}")
    with path.open("rb") as stream:
        found = foreign.of_file(stream, path.stat().st_size)
        refusal = foreign.refusal(found, foreign.CHECKPOINT)
        if refusal is not None:
            raise ForeignFormat(refusal)
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
