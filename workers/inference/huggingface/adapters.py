"""A base captioner that stays in memory for its adapters: its layers get the weights of one after
the other, W + scale · (B @ A) in float32, as PEFT merges them; a frozen layer multiplies by the two
summands.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from service.contract.errors import UnusableCheckpoint
from service.contract.formats import packages
from service.contract.formats.huggingface.adapters import LayerChange, validate_adapter
from workers.inference.devices import FrozenLinear
from workers.inference.huggingface import library, loader
from workers.inference.huggingface.captioner import HuggingFaceCaptioner
from workers.inference.huggingface.image_text_captioner import ImageTextCaptioner

LoadedCaptioner = HuggingFaceCaptioner | ImageTextCaptioner
_TAIL = re.compile(r"(?:.*?\.)??(\d+\..+|[^.]+\.[^.]+)")  # of a name, from its first number on


class AdaptedBase:
    def __init__(self, captioner: LoadedCaptioner) -> None:
        self._captioner = captioner
        self._network = captioner.network
        self._head = library.find_output_layer(captioner.network)
        self._adapter: str | None = None  # whose weights the layers have
        self._own: dict[str, Tensor] = {}  # the base's tensors, where layers have others
        parameters = dict(self._network.named_parameters(remove_duplicate=False))
        uses = Counter(map(id, parameters.values()))
        self._tied = {name for name, each in parameters.items() if uses[id(each)] > 1}
        packed = [
            f"{path}.{kind}"
            for path, layer in self._network.named_modules()
            if isinstance(layer, FrozenLinear)
            for kind in (("weight",) if layer.bias is None else ("weight", "bias"))
        ]
        own = {name: name for name in (*parameters, *packed)}
        self._names: dict[str, str] = {**self._network.stored_names, **own}

    def adapt(self, digest: str, path: Path) -> LoadedCaptioner:
        """The captioner with an adapter. Raises UnusableCheckpoint where it is not of the base."""
        if digest != self._adapter:
            with packages.open_package(path) as package:
                adapter = validate_adapter(package)
                tensors = dict(loader.read_tensors(package, adapter.tensors))
            self._merge(adapter.changes, tensors)
            self._adapter = digest
        return self._captioner

    def _merge(self, changes: Mapping[str, LayerChange], tensors: Mapping[str, Tensor]) -> None:
        added = {self._find(f"{layer}.weight"): layer for layer in changes}
        sides = {f"{layer}.{side}" for layer in changes for side in "AB"}
        replaced = {self._find(name): name for name in tensors.keys() - sides}
        names = {*added, *replaced}
        if len(names) < len(tensors) - len(changes):
            raise UnusableCheckpoint("the adapter has two changes of one tensor of the base")
        self._adapter = None
        for module in self._network.modules():
            if isinstance(module, FrozenLinear):
                module.change = None
        names -= {name for name in added if isinstance(self._place(name)[0], FrozenLinear)}
        written = {*self._own, *names}
        for name in self._own.keys() - names:
            self._write(name, self._own.pop(name))
        for name in names - self._own.keys():
            self._own[name] = self._read(name)
        device = self._captioner.device
        # One for all products: to get new memory takes longer than to compute one.
        room = torch.empty(
            max((self._own[name].numel() for name in added.keys() & names), default=0),
            device=device,
        )
        for name, given in added.items():
            layer, _ = self._place(name)
            a, b = (tensors[f"{given}.{side}"].to(layer.weight.device) for side in "AB")
            shape = (b.shape[0], a.shape[1])
            if name not in names:
                _check_shape(name, (layer.out_features, layer.in_features), shape)
                layer.change = a, changes[given].scale * b
                continue
            turns = changes[given].is_embedding
            _check_shape(name, self._own[name].shape, shape[::-1] if turns else shape)
            product = torch.mm(b, a, out=room[: shape[0] * shape[1]].view(shape))
            product.mul_(changes[given].scale)
            self._write(name, (product.t() if turns else product).add_(self._own[name]))
        for name, given in replaced.items():
            _check_shape(name, self._own[name].shape, tensors[given].shape)
            self._write(name, tensors[given])
        if any(self._place(name)[0] is self._head for name in written):
            self._captioner.pack_again()

    def _find(self, name: str) -> str:
        """Find the tensor with this name, or the likest: versions of the library put the parts of a
        network in other orders.
        """
        tail = _cut_name(name)
        alike = ((each, own) for each, own in self._names.items() if _cut_name(each) == tail)
        ranked = [(_liken(name, each), own) for each, own in alike]
        best = sorted({own for likeness, own in ranked if likeness == max(ranked)[0]})
        if len(best) != 1:
            raise _refuse(
                name, f"one of this name in the base, found {' and '.join(best) or 'none'}"
            )
        if best[0] in self._tied:
            raise _refuse(name, "one that the base does not tie to another (tie_word_embeddings)")
        return best[0]

    def _place(self, name: str) -> tuple[Any, str]:
        path, _, kind = name.rpartition(".")
        return self._network.get_submodule(path), kind

    def _read(self, name: str) -> Tensor:
        layer, kind = self._place(name)
        if isinstance(layer, FrozenLinear) and kind == "weight":
            return layer.unpack_weight()
        found: Tensor = getattr(layer, kind).detach().clone()
        return found

    def _write(self, name: str, value: Tensor) -> None:
        layer, kind = self._place(name)
        if isinstance(layer, FrozenLinear) and kind == "weight":
            layer.replace_weight(value)
        else:
            getattr(layer, kind).detach().copy_(value)


def _check_shape(name: str, own: Sequence[int], shape: Sequence[int]) -> None:
    if [*own] != [*shape]:
        raise _refuse(name, f"shape {[*own]}, as in the base, found {[*shape]}")


def _refuse(name: str, expected: str) -> UnusableCheckpoint:
    return UnusableCheckpoint(
        f"tensor {name}: expected {expected}: choose the base of the adapter's training, or merge "
        "it there (merge_and_unload) and send the whole model"
    )


@lru_cache(maxsize=10_000)
def _cut_name(name: str) -> str:
    """Cut off the parts before the first number, or before the last two."""
    found = _TAIL.fullmatch(name)
    return found[1] if found else name


def _liken(name: str, other: str) -> tuple[bool, int, int]:
    """Likeness of two names: equal; how many parts at their ends are, and how many in all."""
    parts, others = name.split("."), other.split(".")
    same = [a == b for a, b in zip(reversed(parts), reversed(others), strict=False)]
    return name == other, [*same, False].index(False), len({*parts} & {*others})
