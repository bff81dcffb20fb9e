"""Matrix products with one fixed weight, with the device's fastest kernel."""

import torch
from torch import Tensor

# oneDNN's packed kernels do 190-220 G multiply-adds a second where MKL's do 75-95 (EPYC with
# AVX-512, 2 cores, 500 x 512 x 10,000, measured side by side); MKL picks its slow path on AMD.
_PACKABLE = (torch.float32, torch.bfloat16)


class Product:
    """x @ weight + bias, for two-dimensional x only: (n, in) -> (n, out); weight is (in, out)."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.weight = weight
        self.bias = bias
        self._packed = pack(weight)

    @property
    def is_packed(self) -> bool:
        return self._packed is not None

    def __call__(self, x: Tensor) -> Tensor:
        if self._packed is not None and not x.requires_grad:
            rows: Tensor = torch.ops.mkldnn._linear_pointwise(  # noqa: SLF001
                x, self._packed, self.bias, "none", [], ""
            )
            return rows
        if self.bias is None:
            return x @ self.weight
        return torch.addmm(self.bias, x, self.weight)


def knows_bf16(device: torch.device) -> bool:
    """Whether it multiplies bf16; CPUs without the instructions are refused by oneDNN."""
    return device.type != "cpu" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001


def pack(weight: Tensor) -> Tensor | None:
    """The weight (in, out) as the faster kernel takes it; None where there is none."""
    usable = (
        weight.device.type == "cpu"
        and weight.dtype in _PACKABLE
        and not weight.requires_grad
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )
    if not usable:
        return None
    packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(  # noqa: SLF001
        weight.t().contiguous(), 512
    )
    return packed
