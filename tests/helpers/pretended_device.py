"""A pretended CUDA device: its tensors compute on the CPU, refuse tensors of the CPU as CUDA's do,
and their launches and synchronisations are counted.

    with pretended_device() as device:
        model = checkpoints.open_captioner(path, device=CUDA)
        scoring.compute_columns(model, inputs, references)
    print(device.launches.total(), device.synchronisations.total())
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Self
from unittest import mock

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

CPU, CUDA, _META = torch.device("cpu"), torch.device("cuda:0"), torch.device("meta")
_PROPERTIES = SimpleNamespace(name="pretended device", total_memory=80 * 2**30)

_COPIES = ("aten::to", "aten::_to_copy", "aten::copy_")
_FREE = {
    f"aten::{name}" for name in ("empty", "empty_like", "empty_strided", "new_empty", "detach_")
}
_INDEXING = ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_")
_TAKE_SCALARS = (*_INDEXING, "aten::fill_", "aten::masked_fill", "aten::masked_fill_")
_SHOWN_TO_HOST = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class PretendedTensor(Tensor):
    """Tensor that says it is on the device; for torch itself it is on `meta`, whose tensors have no
    numbers: so nothing reads them past the counts.
    """

    numbers: Tensor  # on the CPU
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    @torch.inference_mode(mode=False)
    def __new__(cls, numbers: Tensor) -> Self:
        made = Tensor._make_wrapper_subclass(
            cls,
            numbers.shape,
            strides=numbers.stride(),
            storage_offset=numbers.storage_offset(),
            dtype=numbers.dtype,
            device=_META,
        )
        made.numbers = numbers
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise RuntimeError(f"{func}: a tensor of the pretended device is used outside its context")

    @property
    def device(self) -> torch.device:
        return CUDA

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def __repr__(self, **_: Any) -> str:
        return f"PretendedTensor({self.numbers})"


class PretendedDevice(TorchDispatchMode):
    """Counts of `launches` and `synchronisations`, by the names of torch's operations.

    A launch is an operation that is neither a view nor an allocation. A synchronisation is a copy
    to the host, a copy to the device that is not `non_blocking`, an operation with a result for the
    host (a number, or a shape that depends on numbers), and an index that lies on the host.
    """

    def __init__(self) -> None:
        super().__init__()
        self.launches: Counter[str] = Counter()
        self.synchronisations: Counter[str] = Counter()

    def reset(self) -> None:
        self.launches.clear()
        self.synchronisations.clear()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        kwargs.pop(
            "pin_memory", None
        )  # safetensors asks for it, and no machine without CUDA has it
        given = list_leaves([args, list(kwargs.values())])
        tensors = [each for each in given if isinstance(each, Tensor)]
        here = [each for each in tensors if isinstance(each, PretendedTensor)]
        device = next((each for each in given if isinstance(each, torch.device)), None)
        if not here and (device is None or device == CPU):
            return func(*args, **kwargs)
        name = func._schema.name
        if name == "aten::_has_compatible_shallow_copy_type":  # asked by Module.to
            return False
        if name not in _COPIES:
            _refuse_host_tensors(func, name, args, tensors)
        if device is None:
            device = args[0].device if name == "aten::copy_" else CUDA
        on_host = {key: _map_leaves(_on_host, each) for key, each in kwargs.items()}
        found = func(*_map_leaves(_on_host, args), **on_host)
        crosses = name in _COPIES and any(
            (each.device == CPU) != (device == CPU) for each in tensors
        )
        waits = crosses and (device == CPU or not kwargs.get("non_blocking"))
        self.synchronisations[name] += waits or _is_shown_to_host(func, name, args)
        self.launches[name] += crosses or not is_free(
            func, [each.numbers for each in here], list_leaves(found)
        )
        if device == CPU:
            return found
        known = {id(each.numbers): each for each in here}  # of an operation in place

        def wrap(each: Any) -> Any:
            if not _is_of_host(each):
                return each
            return known[id(each)] if id(each) in known else PretendedTensor(each)

        return _map_leaves(wrap, found)


def _refuse_host_tensors(func, name, args, tensors) -> None:
    indices = args[1] if name in _INDEXING else ()
    takes_scalars = torch.Tag.pointwise in func.tags or name in _TAKE_SCALARS
    for each in filter(_is_of_host, tensors):
        is_index = any(each is index for index in indices)
        if not is_index and not (takes_scalars and each.dim() == 0):
            raise RuntimeError(
                f"{name}: expected all tensors to be on the same device, found one of shape "
                f"{list(each.shape)} on the CPU beside others on {CUDA}"
            )


def _is_shown_to_host(func, name, args) -> bool:
    if name in _INDEXING:
        indices = [each for each in args[1] if each is not None]
        return any(_is_of_host(each) or each.dtype == torch.bool for each in indices)
    return name == "aten::is_nonzero" or bool(_SHOWN_TO_HOST & set(func.tags))


def is_free(func: Any, inputs: list[Tensor], results: list[Any]) -> bool:
    """True for allocations and views."""
    if func._schema.name in _FREE:
        return True
    memory = set(map(_find_memory, inputs))
    tensors = [each for each in results if isinstance(each, Tensor)]
    is_view = all(_find_memory(each) in memory for each in tensors)
    return bool(tensors) and is_view and not func._schema.is_mutable


def _find_memory(tensor: Tensor) -> int:
    is_packed = tensor.layout != torch.strided  # as oneDNN packs weights: without an address
    return id(tensor) if is_packed else tensor.untyped_storage().data_ptr()


def _is_of_host(each: Any) -> bool:
    return isinstance(each, Tensor) and not isinstance(each, PretendedTensor)


def _on_host(each: Any) -> Any:
    if isinstance(each, PretendedTensor):
        return each.numbers
    return CPU if isinstance(each, torch.device) else each


def _map_leaves(change: Callable[[Any], Any], nested: Any) -> Any:
    """torch.utils._pytree takes more time than the operations."""
    if isinstance(nested, list | tuple):
        return type(nested)([_map_leaves(change, each) for each in nested])
    return change(nested)


def list_leaves(nested: Any) -> list[Any]:
    leaves: list[Any] = []
    _map_leaves(leaves.append, nested)
    return leaves


@contextmanager
def pretended_device() -> Iterator[PretendedDevice]:
    """In this context `cuda:0` is the pretended device, also where torch has no CUDA."""
    functions = {
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "get_device_properties": lambda _=None: _PROPERTIES,
        "synchronize": lambda _=None: None,
        "_lazy_init": torch.cuda._lazy_init if torch.cuda.is_available() else lambda: None,
    }
    lifts = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor copies to the device in our sight
    try:
        with mock.patch.multiple(torch.cuda, **functions), PretendedDevice() as device:
            yield device
    finally:
        torch._C._set_only_lift_cpu_tensors(lifts)
