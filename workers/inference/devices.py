"""Devices for models (PRESCORE_DEVICE), and their fastest kernels for matrix products."""

import torch
from torch import Tensor, nn

from service.contract.errors import InvalidSetting


def resolve_device(setting: str) -> torch.device:
    """The device of a setting; `auto` is the first CUDA device if there is one, else the CPU."""
    if setting == "auto":
        return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    if setting.startswith("cuda"):
        count = torch.cuda.device_count()
        if int(setting.removeprefix("cuda:")) >= count:
            raise InvalidSetting(
                f"PRESCORE_DEVICE={setting}: this machine has {count} CUDA devices; "
                "use auto or cpu, or run a CUDA build of torch on a machine with a GPU"
            )
    return torch.device(setting)


class PackedLinear(nn.Module):
    """Linear layer that is not trained: only the packed weight stays in memory. `is_turned`: the
    weight was (in, out). `change`: A and B, of which B @ A counts as added to the weight (out, in);
    to pack a sum anew takes as long as hundreds of captions.
    """

    def __init__(self, packed: Tensor, bias: Tensor | None, *, is_turned: bool) -> None:
        super().__init__()
        self._packed = packed
        self.bias = bias
        self.is_turned = is_turned
        self.weight = torch.empty(0, dtype=packed.dtype)  # whose dtype and device networks read
        self.out_features, self.in_features = packed.shape
        self.change: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor) -> Tensor:
        out = _multiply_packed(x, self._packed, self.bias)
        if self.change is not None:
            a, b = self.change
            out.view(-1, self.out_features).addmm_((x @ a.t()).flatten(0, -2), b.t())
        return out

    def unpack_weight(self) -> Tensor:
        """A copy of the weight as it was before, equal to the bit."""
        plain = self._packed.to_dense()
        return plain.t() if self.is_turned else plain

    def replace_weight(self, weight: Tensor) -> None:
        packed = pack_weight(weight if self.is_turned else weight.t())
        assert packed is not None
        self._packed = packed


def pack_layers(module: nn.Module, but: nn.Module) -> None:
    """Replace all linear layers inside but one, where the device has a faster kernel, and the GELU
    that the library computes in eight passes.
    """
    from transformers.activations import NewGELUActivation

    for name, child in module.named_children():
        if child is but:
            continue
        if type(child) is NewGELUActivation:
            setattr(module, name, nn.GELU(approximate="tanh"))
            continue
        weight = _weight_of(child)
        packed = None if weight is None else pack_weight(weight.detach())
        if packed is None:
            pack_layers(child, but)
        else:
            bias = getattr(child, "bias", None)
            bias = None if bias is None else bias.detach()
            setattr(module, name, PackedLinear(packed, bias, is_turned=is_turned(child)))


def _weight_of(module: nn.Module) -> Tensor | None:
    """Weight (in, out) of a linear layer; None for any other module."""
    from transformers.pytorch_utils import Conv1D

    if type(module) is nn.Linear:
        return module.weight.t()
    return module.weight if type(module) is Conv1D else None


def is_turned(layer: nn.Module) -> bool:
    """Tell if the weight of a layer is (in, out), as that of a Conv1D."""
    from transformers.pytorch_utils import Conv1D

    return layer.is_turned if isinstance(layer, PackedLinear) else type(layer) is Conv1D


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
