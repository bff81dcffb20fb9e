"""Layers of a network on several devices of one worker, each after the other."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from workers.inference.devices import freeze_layers


def place_network(
    network: Any, head: nn.Module, devices: Sequence[torch.device], *, halves: bool
) -> None:
    """Freeze a network on the first device, and all but the first share of its decoder's layers on
    the others, to which their inputs are moved.
    """
    first, *others = devices
    layers = _find_layers(network)
    share = -(-len(layers) // len(devices))
    placed = [(layer, devices[at // share]) for at, layer in enumerate(layers) if others]
    for layer, device in placed:
        freeze_layers(layer, head, device, halves=halves)
    freeze_layers(network, head, first, halves=halves)
    network.to(first)
    for layer, device in placed:
        layer.to(device)
        layer.register_forward_pre_hook(_MoveInputs(device), with_kwargs=True)
    if placed:
        layers[-1].register_forward_hook(lambda _module, _given, out: _move(out, first))


def _find_layers(network: Any) -> nn.ModuleList:
    """Find the layers that have most of the parameters."""
    lists = (each for each in network.modules() if isinstance(each, nn.ModuleList))
    return max(lists, key=lambda each: sum(one.numel() for one in each.parameters()))


class _MoveInputs:
    def __init__(self, device: torch.device) -> None:
        self._device = device

    def __call__(self, _module: nn.Module, args: Any, kwargs: Any) -> tuple[Any, Any]:
        return _move(args, self._device), _move(kwargs, self._device)


def _move(value: Any, device: torch.device) -> Any:
    if isinstance(value, Tensor):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(_move(each, device) for each in value)
    if isinstance(value, dict):
        return {name: _move(each, device) for name, each in value.items()}
    return value
