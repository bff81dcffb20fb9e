"""The tensors of a PyTorch file, written as safetensors.

Runs in the sandbox's child alone: the file is a pickle, and what opens pickles safely has been
broken before.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from workers import tensor_files
from workers.sandbox.child import InputRefused

# Where training programs keep the tensors beside other things.
_WITHIN = ("state_dict", "model_state_dict", "model")
_MOST_NAMED = 20
_MOST_NAMES = 16  # of one tensor: layers that share their weights have one name each
_SAVE = "save the tensors alone: torch.save(model.state_dict(), path)"
# What public code names that saves whole modules side by side, and where its captioner is. No other
# class is told how to be opened: whatever names it may be an attack.
_WHOLE = (
    ": whole modules, as of sgrvinod/a-PyTorch-Tutorial-to-Image-Captioning? Where its code lies, "
    'after its own torch.load: torch.save(checkpoint["decoder"].state_dict(), path), '
    "deploy/guide/bring-a-model.md"
)
_PICKLED = dict.fromkeys(("models.Encoder", "models.DecoderWithAttention"), _WHOLE)
_ADVICE = ("Weights only load failed", "Please file an issue", "Check the documentation")
_REFUSED = {  # by torch, in sentences about its own options
    "TorchScript archive": "it is a TorchScript program, and loading one runs code in it",
    "legacy .tar format": "it is a tar, PyTorch's oldest format",
}
_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
}


def convert_state_dict(
    inputs: Sequence[Path], outputs: Sequence[Path], parameters: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Answers the names of some entries that were left out."""
    found = dict(_entries(_load(inputs[0])))
    tensors = {name: value for name, value in found.items() if _is_plain(value)}
    if not tensors:
        raise InputRefused(f"expected names and tensors, found no tensor that can be used; {_SAVE}")
    for name, tensor in tensors.items():
        _check_stored(name, tensor)
    size = sum(tensor.nbytes for tensor in tensors.values())
    stored = inputs[0].stat().st_size
    most = min(int(parameters["most_bytes"]), _MOST_NAMES * stored)
    if size > most:
        raise InputRefused(
            f"its tensors have {size:,} bytes, more than {most:,} of a file of {stored:,}: tensors "
            "that share memory are written once for each name; save them by .clone() without "
            "those that are not needed"
        )
    with torch.no_grad():
        _write(outputs[0], tensors)
    left_out = sorted(name for name in found if name not in tensors)
    return {"left_out": left_out[:_MOST_NAMED]}


def _load(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001  torch raises many kinds for a file that is wrong
        raise InputRefused(f"PyTorch cannot read it: {_reason(error)}; {_SAVE}") from None


def _reason(error: Exception) -> str:
    """Shorten torch's message, which also advises to switch the safe reader off, to its reason."""
    text = str(error)
    if named := re.search(r"GLOBAL ([\w.]+)", text):
        reason = f"it names {named[1]}, and a state dict holds nothing but tensors"
        return f"{reason}{_PICKLED.get(named[1], '')}"
    for mark, said in _REFUSED.items():
        if mark in text:
            return said
    lines = [line for line in text.splitlines() if line and not line.startswith(_ADVICE)]
    return f"{type(error).__name__}: {next(iter(lines), '')}"[:200]


def _entries(found: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(found, Mapping):
        raise InputRefused(f"expected names and tensors, found a {type(found).__name__}; {_SAVE}")
    for name in _WITHIN:
        if isinstance(found.get(name), Mapping):
            found = found[name]
            break
    for name, value in found.items():
        if not isinstance(name, str):
            raise InputRefused(
                f"expected names that are text, found a {type(name).__name__}; {_SAVE}"
            )
        if _is_state_dict(value):
            yield from ((f"{name}.{within}", tensor) for within, tensor in value.items())
        else:
            yield name, value


def _is_state_dict(value: Any) -> bool:
    """Tell if it is one of several that stand beside each other, as of an encoder and a decoder."""
    return (
        isinstance(value, Mapping)
        and all(isinstance(name, str) for name in value)
        and any(isinstance(each, torch.Tensor) for each in value.values())
    )


def _is_plain(value: Any) -> bool:
    return (
        isinstance(value, torch.Tensor)
        and value.layout is torch.strided
        and value.device.type == "cpu"
        and value.dtype in _DTYPES
    )


def _check_stored(name: str, tensor: torch.Tensor) -> None:
    """Refuse a tensor that repeats elements, which would be written out one by one."""
    stored = tensor.untyped_storage().nbytes()
    if tensor.nbytes > stored:
        raise InputRefused(
            f"{name!r:.100} has {tensor.numel():,} elements, and the file stores "
            f"{stored // tensor.element_size():,} of them: save what .contiguous() makes of it"
        )


def _write(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """A tensor that shares another one's memory gets its own."""
    arrays, dtypes = {}, {}
    for name, tensor in tensors.items():
        whole = tensor.detach().contiguous()
        if tensor.dtype is torch.bfloat16:
            whole, dtypes[name] = whole.view(torch.uint16), "BF16"
        arrays[name] = whole.numpy()
    tensor_files.write_tensors_into(path, arrays, {}, dtypes)
