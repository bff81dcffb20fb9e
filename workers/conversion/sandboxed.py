"""Opens a file that could run code, in the sandbox, and judges what comes out."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prescore import plain_text
from service.contract.errors import (
    InvalidCheckpoint,
    RequestRefused,
    SandboxUnavailable,
    UnusableCheckpoint,
)
from service.contract.formats import safetensors_header
from service.contract.settings import Sandbox, Settings
from workers.sandbox import confined
from workers.sandbox.confinement import left_out
from workers.sandbox.limits import Limits

_SECONDS = 600.0
_MOST_BYTES = 16_000_000_000


@dataclass(frozen=True)
class Box:
    """What a conversion may take, and whether it is confined."""

    memory: int = Limits.memory  # bytes
    sandbox: Sandbox = "required"

    @classmethod
    def of(cls, settings: Settings) -> "Box":
        return cls(settings.task_memory, settings.sandbox)


def pytorch(source: Path, target: Path, box: Box) -> Sequence[str]:
    """Write the tensors of a PyTorch state dict to a safetensors file with the same names; returns
    some of the entries that are left out: they are no tensors, or tensors that no checkpoint has.

    Raises UnusableCheckpoint where the file is not one or takes too much, and SandboxUnavailable
    where this machine has no sandbox and PRESCORE_SANDBOX asks for one.
    """
    with tempfile.TemporaryDirectory(prefix=".prescore-", dir=target.resolve().parent) as folder:
        made = Path(folder) / "made"
        asked = {"most_bytes": _MOST_BYTES}
        answer = _run("workers.conversion.pytorch:convert", source, [made], asked, box)
        _judge(made)
        made.replace(target)
    return _names(answer.get("left_out"))


def transformers(source: Path, box: Box) -> None:
    """Open what transformers has saved, and let it write a caption. Raises as `pytorch` does."""
    asked = {"memory": box.memory}
    _run("workers.conversion.huggingface:check", source, [], asked, box)


def tokenizer(source: Path, box: Box) -> None:
    """Open the tokenizer of an ONNX bundle or of a plug-in's checkpoint, and let it make pieces.
    Raises as `pytorch` does.
    """
    _run("workers.conversion.tokenizers:check", source, [], {}, box)


def _run(
    operation: str, source: Path, outputs: Sequence[Path], asked: Mapping[str, Any], box: Box
) -> Mapping[str, Any]:
    if not source.exists():
        raise RequestRefused(f"expected a file, found nothing at {source}")
    limits = Limits(_SECONDS, int(_SECONDS), box.memory, _MOST_BYTES)
    without = left_out(box.sandbox)
    try:
        return confined.run(operation, [source], outputs, asked, limits=limits, without=without)
    except confined.Refused as refused:
        raise UnusableCheckpoint(str(refused)) from None
    except confined.Stopped as stopped:
        raise UnusableCheckpoint(f"it cannot be opened: the process {stopped}") from None
    except confined.Unavailable as unavailable:
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
            safetensors_header.read(stream, made.stat().st_size)
    except InvalidCheckpoint as error:
        raise UnusableCheckpoint(f"what was made of it is wrong: {error.detail}") from None
