"""Files of other programs: their tensors, read in the sandbox where a file could run code."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from prescore import foreign, model_types, plain_text
from service.contract.errors import (
    ForeignFormat,
    InvalidCheckpoint,
    RequestRefused,
    SandboxUnavailable,
    UnusableCheckpoint,
)
from service.contract.formats import safetensors_header
from service.contract.settings import Sandbox, Settings
from service.kernel.confinement import list_skipped_mechanisms
from service.kernel.process_limits import ChildLimits
from workers.conversion.layers import Arrays
from workers.sandbox import operations

_SECONDS = 600.0
_MOST_BYTES = 16_000_000_000


@dataclass(frozen=True)
class ConversionLimits:
    """Limits of a conversion: bytes of memory, and whether it is confined."""

    memory: int = ChildLimits.memory  # bytes
    sandbox: Sandbox = "required"

    @classmethod
    def of(cls, settings: Settings) -> "ConversionLimits":
        return cls(settings.task_memory, settings.sandbox)


def extract_tensors(source: Path, target: Path, box: ConversionLimits) -> Sequence[str]:
    """Write the tensors of a PyTorch state dict to a safetensors file with the same names; returns
    some of the entries that are left out: they are no tensors, or tensors that no checkpoint has.

    Raises UnusableCheckpoint where the file is not one or takes too much, and SandboxUnavailable
    where this machine has no sandbox and PRESCORE_SANDBOX asks for one.
    """
    with tempfile.TemporaryDirectory(prefix=".prescore-", dir=target.resolve().parent) as folder:
        made = Path(folder) / "made"
        asked = {"most_bytes": _MOST_BYTES}
        answer = _run("workers.conversion.pytorch:convert_state_dict", source, [made], asked, box)
        _judge(made)
        made.replace(target)
    return _names(answer.get("left_out"))


def check_huggingface(source: Path, box: ConversionLimits) -> None:
    """Open a package of transformers, and let it write a caption. Raises as `extract_tensors`."""
    asked = {"memory": box.memory, "model_types": os.environ.get(model_types.ADMITTING, "")}
    _run("workers.conversion.verification:verify_huggingface", source, [], asked, box)


def check_adapter(source: Path, box: ConversionLimits) -> None:
    """Read the files of an adapter. Raises as `extract_tensors`."""
    _run("workers.conversion.verification:verify_adapter", source, [], {}, box)


def _run(
    operation: str,
    source: Path,
    outputs: Sequence[Path],
    asked: Mapping[str, Any],
    box: ConversionLimits,
) -> Mapping[str, Any]:
    if not source.exists():
        raise RequestRefused(f"expected a file, found nothing at {source}")
    limits = ChildLimits(_SECONDS, int(_SECONDS), box.memory, _MOST_BYTES)
    without = list_skipped_mechanisms(box.sandbox)
    try:
        return operations.run_operation(
            operation, [source], outputs, asked, limits=limits, without=without
        )
    except operations.InputRefused as refused:
        raise UnusableCheckpoint(str(refused)) from None
    except operations.ChildStopped as stopped:
        raise UnusableCheckpoint(f"it cannot be opened: the process {stopped}") from None
    except operations.ConfinementUnavailable as unavailable:
        raise SandboxUnavailable(
            f"{unavailable}; this format is opened in a sandbox alone (PRESCORE_SANDBOX)"
        ) from None


def _names(found: object) -> list[str]:
    """Texts of a list, which the child may have made of anything."""
    listed = found if isinstance(found, list) else []
    return [plain_text.quoted(each) for each in listed if isinstance(each, str)]


def _judge(made: Path) -> None:
    """With the reader for strangers' files: whoever wrote the source may have written this."""
    try:
        with made.open("rb") as stream:
            safetensors_header.read_safetensors_header(stream, made.stat().st_size)
    except InvalidCheckpoint as error:
        raise UnusableCheckpoint(f"what was made of it is wrong: {error.detail}") from None


_FLOATS = ("F64", "F32", "F16", "BF16")


def read_tensors(
    path: Path, box: ConversionLimits, wanted: str | None = None
) -> tuple[Arrays, Sequence[str]]:
    """Tensors of numbers with a fraction, in float32, and the names of entries that are no tensors.
    What counts (integers) is left out. A PyTorch file is opened in the sandbox. `wanted`: what
    another file is told, where it is not for a checkpoint that tensors are read.
    """
    if not path.is_file():
        raise RequestRefused(f"expected a file with a model's tensors, found nothing at {path}")
    with path.open("rb") as stream:
        found = foreign.of_file(stream, path.stat().st_size)
    if found is not None and found.serves == foreign.STATE_DICT:
        with tempfile.TemporaryDirectory(prefix="prescore-") as folder:
            target = Path(folder) / "model.safetensors"
            left_out = extract_tensors(path, target, box)
            return _tensors(target), left_out
    refusal = foreign.refusal(found, foreign.CHECKPOINT)
    if wanted is not None and (refusal is not None or found is None):
        raise RequestRefused(f"expected {wanted}, found {_told(found, path)}")
    if refusal is not None:
        raise ForeignFormat(refusal)
    return _tensors(path), ()


def _told(found: foreign.Format | None, path: Path) -> str:
    if found is not None:
        return found.what
    return "a file of no known format" if path.stat().st_size else "an empty file"


def _tensors(path: Path) -> Arrays:
    with path.open("rb") as stream:
        header = safetensors_header.read_safetensors_header(stream, path.stat().st_size)
    try:
        with safe_open(path, framework="pt") as file:
            return {
                name: file.get_tensor(name).float().numpy()
                for name, entry in header.tensors.items()
                if entry.dtype in _FLOATS
            }
    except SafetensorError as error:
        raise RequestRefused(f"{path}: the tensors cannot be read: {error}") from None
