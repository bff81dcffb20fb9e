"""The layers of a library's network, by the fastest kernels of the device."""

import torch
from torch import Tensor, nn

from workers.inference.matrix_products import pack


class Packed(nn.Module):
    """In place of a linear layer that is not trained: only the packed weight stays in memory."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self._weight = weight
        self._bias = bias

    def forward(self, x: Tensor) -> Tensor:
        rows: Tensor = torch.ops.mkldnn._linear_pointwise(  # noqa: SLF001
            x, self._weight, self._bias, "none", [], ""
        )
        return rows


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
        packed = None if weight is None else pack(weight.detach())
        if packed is None:
            pack_layers(child, but)
        else:
            bias = getattr(child, "bias", None)
            setattr(module, name, Packed(packed, None if bias is None else bias.detach()))


def _weight_of(module: nn.Module) -> Tensor | None:
    """(in, out), or None where it is no linear layer."""
    from transformers.pytorch_utils import Conv1D

    if type(module) is nn.Linear:
        return module.weight.t()
    return module.weight if type(module) is Conv1D else None
