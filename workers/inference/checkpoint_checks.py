"""Checks before a captioner runs: whether its weights and the images' places fit into memory, and
whether its tensors are finite.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from service.contract.errors import OutOfMemory, UnusableCheckpoint
from service.contract.formats.architectures import RecurrentConfig
from service.contract.formats.checkpoint_header import CheckpointHeader
from workers.inference.captioners import CanonicalCaptioner, Captioner
from workers.inference.captioners.recurrent import MAX_TABLE_BYTES
from workers.inference.features import Inputs

_FLOAT32 = 4
_PROGRAM = 400_000_000  # torch and the largest batches
_COPIES = 4  # of features: as they are read, as a tensor, without what is not there, normalised
_BLOCK = 128  # images of which all places are in memory at once
_READ = ("gates.weight", "candidate.weight")
_MULTIPLIED = ("output.weight", *_READ)


def estimate_memory(header: CheckpointHeader, device: torch.device) -> int:
    """Bytes, or a little more: the tensors in float32; on a CPU, the copies of those that are
    multiplied, one of them twice while it is made, the table of words, and the file, whose pages
    count as long as it is read.
    """
    sizes = {name: _FLOAT32 * math.prod(each.shape) for name, each in header.tensors.items()}
    weights = sum(sizes.values())
    if device.type != "cpu":
        return weights + _PROGRAM
    copies = [sizes.get(name, 0) for name in _multiplied(header)]
    read = [each.shape[1] for name, each in header.tensors.items() if name in _READ]
    has_table = isinstance(header.description.config, RecurrentConfig)
    table = _FLOAT32 * len(header.description.vocabulary) * sum(read) * has_table
    stored = sum(each.end - each.start for each in header.tensors.values())
    kept = table if table <= MAX_TABLE_BYTES else 0
    return weights + sum(copies) + max(copies) + stored + kept + _PROGRAM


def _multiplied(header: CheckpointHeader) -> Sequence[str]:
    """The tensors of which a copy is made for products."""
    if isinstance(header.description.config, RecurrentConfig):
        return _MULTIPLIED
    matrices = [name for name, each in header.tensors.items() if len(each.shape) == 2]
    return [name for name in matrices if name != "embedding.weight"]


def check_places_fit(model: Captioner, inputs: Inputs, limit: int | None) -> None:
    """Raise OutOfMemory if the places of a block of images cannot fit beside the model."""
    shape = np.shape(inputs[:0])
    if len(shape) != 3 or not isinstance(model, CanonicalCaptioner) or model.device.type != "cpu":
        return
    _, places, size = shape
    of_words = 3 * model.description.config.size  # keys, values, what becomes of them
    block = _FLOAT32 * min(_BLOCK, len(inputs)) * places * (_COPIES * size + of_words)
    weights = 2 * sum(tensor.nbytes for tensor in model.tensors.values())
    what = f"{_BLOCK} images with {places:,} places of size {size:,}, beside the captioner,"
    check_memory_limit(what, block + weights + _PROGRAM, limit)


def check_captioner_fits(
    parameters: int, needs: int, devices: Sequence[torch.device], limit: int | None
) -> None:
    """Raise OutOfMemory if it does not fit into its CUDA devices, or on a CPU into `limit`."""
    if devices[0].type == "cuda":
        limit = count_device_bytes(devices)
    check_memory_limit(f"a captioner of {parameters:,} parameters", needs, limit)


def count_device_bytes(devices: Iterable[torch.device]) -> int:
    return sum(torch.cuda.get_device_properties(each).total_memory for each in devices)


def check_memory_limit(what: str, needs: int, limit: int | None) -> None:
    """Raise OutOfMemory if `what` needs more bytes than the limit."""
    if limit is not None and needs > limit:
        raise OutOfMemory(
            f"{what} takes about {needs / 1e6:,.0f} MB, and a task may take {limit / 1e6:,.0f} MB: "
            "use a smaller model, or a worker with more memory (PRESCORE_TASK_MEMORY_MB, if the "
            "machine has more)"
        )


def read_finite_tensors(
    path: Path, names: Iterable[str], device: torch.device | str
) -> dict[str, Tensor]:
    """Tensors of a safetensors file, all floating point ones in float32. Raises UnusableCheckpoint
    where the library cannot read them, though the header is right, or values are not finite.
    """
    tensors = {}
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            for name in names:
                tensor = file.get_tensor(name)
                tensors[name] = tensor.float() if tensor.is_floating_point() else tensor
    except SafetensorError as error:
        raise UnusableCheckpoint(f"the tensors cannot be read: {error}") from None
    for name, tensor in tensors.items():
        check_finite(name, tensor)
    return tensors


def check_finite(name: str, tensor: Tensor) -> None:
    wrong = int((~torch.isfinite(tensor)).sum())
    if wrong:
        are = "is not a finite number" if wrong == 1 else "are not finite numbers"
        raise UnusableCheckpoint(
            f"tensor {name}: {wrong} of {tensor.numel()} values {are}; did the training diverge?",
            pointer=f"/{name}",
        )
