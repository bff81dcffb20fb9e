"""A device's own rates, and the share of them that a task reaches."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import torch
from rows import seconds  # beside this file
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from helpers.pretended_device import is_free, list_leaves

_SIDES, _COPIED = {"cpu": 2_048, "cuda": 8_192}, {"cpu": 2**28, "cuda": 2**32}
_SELECTIONS = ("aten::index", "aten::index_select", "aten::gather", "aten::embedding")


@dataclass(frozen=True)
class Work:
    multiply_adds: float
    moved: float  # bytes that its operations read and write

    @classmethod
    def count(cls, task: Callable[[], object]) -> Self:
        """Run the task once, and count by the shapes of its tensors."""
        packed = {torch.ops.mkldnn._linear_pointwise: _count_packed}
        products = FlopCounterMode(display=False, custom_mapping=packed)
        with products, _MovedBytes() as memory:
            task()
        return cls(products.get_total_flops() / 2, memory.moved)


def _count_packed(x: torch.Size, *_: Any, out_shape: torch.Size, **__: Any) -> int:
    return 2 * x.numel() * out_shape[-1]


class _MovedBytes(TorchDispatchMode):
    """What operations read and write that are no views; of a table, the rows that are selected."""

    moved = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        inputs, outputs = (
            [each for each in list_leaves(some) if isinstance(each, torch.Tensor)]
            for some in ([args, list((kwargs or {}).values())], found)
        )
        if not is_free(func, inputs, outputs):
            read = outputs if func._schema.name in _SELECTIONS else inputs
            self.moved += sum(each.numel() * each.element_size() for each in (*read, *outputs))
        return found


@dataclass(frozen=True)
class DeviceRates:
    """Of a large matrix product by torch's own `@`, and of a large copy."""

    multiply_adds: float  # a second
    moved: float  # bytes a second, read and written

    @classmethod
    def measure(cls, device: torch.device, dtype: torch.dtype = torch.float32) -> Self:
        side, size = _SIDES[device.type], _COPIED[device.type]
        a, b = torch.randn(2, side, side, device=device).to(dtype)
        source = torch.ones(size, dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
        return cls(
            side**3 / seconds(lambda: a @ b, 5), 2 * size / seconds(lambda: target.copy_(source), 5)
        )

    def describe(self, work: Work, took: float) -> str:
        products = work.multiply_adds / took / self.multiply_adds
        memory = work.moved / took / self.moved
        return (
            f"{products:.0%} of torch's own rate "
            f"({self.multiply_adds / 1e9:.0f} G multiply-adds/s), "
            f"{memory:.0%} of that of copies ({self.moved / 1e9:.0f} GB/s)"
        )
