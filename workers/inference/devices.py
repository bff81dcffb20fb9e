"""Devices for models (PRESCORE_DEVICE), and their fastest kernels for matrix products."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from service.contract.errors import InvalidSetting


def resolve_device(setting: str) -> torch.device:
    """The first device of a setting."""
    return resolve_devices(setting)[0]


def resolve_devices(setting: str) -> list[torch.device]:
    """The devices of a setting; `auto` is the first CUDA device if there is one, else the CPU."""
    if setting == "auto":
        return [torch.device("cuda:0" if torch.cuda.is_available() else "cpu")]
    found = [torch.device(each) for each in setting.split(",")]
    count = torch.cuda.device_count() if found[0].type == "cuda" else 1
    if any(device.index is not None and device.index >= count for device in found):
        raise InvalidSetting(
            f"PRESCORE_DEVICE={setting}: this machine has {count} CUDA devices; "
            "use auto or cpu, or run a CUDA build of torch on a machine with a GPU"
        )
    return found


class FrozenLinear(nn.Module):
    """Linear layer that is not trained: its weight stays as the device multiplies it fastest or, on
    a GPU that is short of memory (`halves`), as files of today store it, in 16 bits. `is_turned`:
    the weight was (in, out). `change`: A and B, of which B @ A counts as added to the weight (out,
    in); to pack a sum anew takes as long as hundreds of captions.
    """

    def __init__(self, layer: Any, device: torch.device, *, halves: bool) -> None:
        super().__init__()
        bias, weight = layer.bias, layer.weight.detach().to(device)
        self.is_turned = type(layer) is not nn.Linear
        self.bias: Tensor | None = None if bias is None else bias.detach().to(device)
        self.out_features, self.in_features = weight.shape[:: -1 if self.is_turned else 1]
        self.weight: Tensor = weight.new_empty(0)  # whose dtype and device networks read
        self.change: tuple[Tensor, Tensor] | None = None
        self._halves = halves
        self.replace_weight(weight)

    def forward(self, x: Tensor) -> Tensor:
        if self._stored.is_mkldnn:
            out = _multiply_packed(x, self._stored, self.bias)
        else:
            out = functional.linear(x, self._stored.to(x.dtype), self.bias)
        if self.change is not None:
            a, b = self.change
            out.view(-1, self.out_features).addmm_((x @ a.t()).flatten(0, -2), b.t())
        return out

    def unpack_weight(self) -> Tensor:
        """A copy of the weight as it was before, equal to the bit."""
        plain = self._stored.to_dense().to(self.weight.dtype, copy=True)
        return plain.t() if self.is_turned else plain

    def replace_weight(self, weight: Tensor) -> None:
        weight = weight.t() if self.is_turned else weight
        packed = pack_weight(weight.t())
        if packed is None:
            packed = _find_half(weight) if self._halves else weight.contiguous()
        self._stored = packed


def _find_half(weight: Tensor) -> Tensor:
    """The same numbers in 16 bits; the weight itself where they have more."""
    for dtype in (torch.bfloat16, torch.float16):
        half = weight.to(dtype)
        if torch.equal(half.to(weight.dtype), weight):
            return half.contiguous()
    return weight.contiguous()


def freeze_layers(
    module: nn.Module, but: nn.Module, device: torch.device | str = "cpu", *, halves: bool = False
) -> None:
    """Replace all linear layers inside but one by layers on a device that are not trained, and the
    GELU that the library computes in eight passes.
    """
    from transformers.activations import NewGELUActivation
    from transformers.pytorch_utils import Conv1D

    for name, child in module.named_children():
        if child is but:
            continue
        if type(child) is NewGELUActivation:
            setattr(module, name, nn.GELU(approximate="tanh"))
        elif type(child) in (nn.Linear, Conv1D):
            setattr(module, name, FrozenLinear(child, torch.device(device), halves=halves))
        else:
            freeze_layers(child, but, device, halves=halves)


# oneDNN's packed kernels do 190-220 G multiply-adds a second where MKL's do 75-95 (EPYC with
# AVX-512, 2 cores, 500 x 512 x 10,000, measured side by side); MKL picks its slow path on AMD.
_PACKABLE = (torch.float32, torch.bfloat16)


class Product:
    """x @ weight + bias, for two-dimensional x only: (n, in) -> (n, out); weight is (in, out)."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        self.weight = weight
        self.bias = bias
        self._packed = pack_weight(weight)

    @property
    def is_packed(self) -> bool:
        return self._packed is not None

    def pack_again(self) -> None:
        """Take over the values that the weight has now."""
        self._packed = pack_weight(self.weight)

    def __call__(self, x: Tensor) -> Tensor:
        if self._packed is not None and not x.requires_grad:
            return _multiply_packed(x, self._packed, self.bias)
        if self.bias is None:
            return x @ self.weight
        return torch.addmm(self.bias, x, self.weight)


def _multiply_packed(x: Tensor, packed: Tensor, bias: Tensor | None) -> Tensor:
    rows: Tensor = torch.ops.mkldnn._linear_pointwise(x, packed, bias, "none", [], "")  # noqa: SLF001
    return rows


def supports_bf16(device: torch.device) -> bool:
    """Tell if the device multiplies bf16; oneDNN refuses CPUs without the instructions."""
    return device.type != "cpu" or bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001


def pack_weight(weight: Tensor) -> Tensor | None:
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
