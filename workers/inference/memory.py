"""How much memory a checkpoint needs, told by its header before a tensor is read."""

import math

import torch

from service.contract.errors import OutOfMemory
from service.contract.formats.checkpoint_header import CheckpointHeader
from workers.inference.captioners.recurrent import MAX_TABLE_BYTES

_FLOAT32 = 4
_PROGRAM = 400_000_000  # torch and the largest batches
_READ = ("gates.weight", "candidate.weight")
_MULTIPLIED = ("output.weight", *_READ)


def needed(header: CheckpointHeader, device: torch.device) -> int:
    """Bytes, or a little more: the tensors in float32; on a CPU, the copies of those that are
    multiplied, one of them twice while it is made, the table of words, and the file, whose pages
    count as long as it is read.
    """
    sizes = {name: _FLOAT32 * math.prod(each.shape) for name, each in header.tensors.items()}
    weights = sum(sizes.values())
    if device.type != "cpu":
        return weights + _PROGRAM
    copies = [sizes.get(name, 0) for name in _MULTIPLIED]
    read = [each.shape[1] for name, each in header.tensors.items() if name in _READ]
    table = _FLOAT32 * len(header.description.vocabulary) * sum(read)
    stored = sum(each.end - each.start for each in header.tensors.values())
    kept = table if table <= MAX_TABLE_BYTES else 0
    return weights + sum(copies) + max(copies) + stored + kept + _PROGRAM


def check(header: CheckpointHeader, device: torch.device, limit: int | None) -> None:
    """Raise OutOfMemory if a captioner cannot fit: into `limit`, or into its CUDA device."""
    if device.type == "cuda":
        limit = torch.cuda.get_device_properties(device).total_memory
    check_fits(f"a captioner of {header.parameters:,} parameters", needed(header, device), limit)


def check_fits(what: str, needs: int, limit: int | None) -> None:
    """Raise OutOfMemory if `what` needs more bytes than the limit."""
    if limit is not None and needs > limit:
        raise OutOfMemory(
            f"{what} takes about {needs / 1e6:,.0f} MB, and a work may take {limit / 1e6:,.0f} MB: "
            "use a smaller model, or a worker with more memory (PRESCORE_WORK_MEMORY_MB, if the "
            "machine has more)"
        )
