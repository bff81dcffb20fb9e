"""Reads, checks and writes canonical checkpoints; service.contract checks their headers."""

from collections.abc import Sequence
from pathlib import Path

import torch

from service.contract.errors import InvalidCheckpoint
from service.contract.formats import checkpoint_header, model_formats
from service.contract.settings import Sandbox
from workers import tensor_files
from workers.inference import checkpoint_checks
from workers.inference.captioners import ARCHITECTURES, CanonicalCaptioner, Captioner


def read_checkpoint(
    path: Path | str, device: torch.device | str = "cpu", limit: int | None = None
) -> CanonicalCaptioner:
    """The captioner in a file, in float32 on `device`.

    Raises InvalidCheckpoint (header, metadata, config, vocabulary) and OutOfMemory (it would take
    more than `limit` bytes) before it reads any tensor, and UnusableCheckpoint where a tensor's
    values are not finite.
    """
    path = Path(path)
    if not path.is_file():
        raise InvalidCheckpoint(f"expected a checkpoint file, found nothing at {path}")
    header = checkpoint_header.read_checkpoint_header(path)
    target = torch.device(device)
    needs = checkpoint_checks.estimate_memory(header, target)
    checkpoint_checks.check_captioner_fits(header.parameters, needs, [target], limit)
    tensors = checkpoint_checks.read_finite_tensors(path, header.tensors, device)
    description = header.description
    return ARCHITECTURES[description.architecture](description, tensors)


def open_captioner(
    path: Path,
    device: torch.device | str | Sequence[torch.device] = "cpu",
    limit: int | None = None,
    sandbox: Sandbox = "required",
) -> Captioner:
    """The captioner in a file or folder of any format that is evaluated as it is, told by its
    content: a canonical checkpoint, an ONNX bundle, what transformers has saved, or what a plug-in
    opens. `device`: one, or several for models that can be on all of them; `sandbox`: the setting.
    """
    from workers.inference.huggingface import loader
    from workers.inference.onnx import captioner
    from workers.inference.plugins import loader as of_plugins

    devices = [torch.device(device)] if isinstance(device, torch.device | str) else device
    device = devices[0]
    match model_formats.detect_format(path) if path.exists() else None:
        case "onnx":
            return captioner.read_onnx_captioner(path, limit, sandbox=sandbox)
        case "huggingface":
            return loader.read_captioner(path, devices, limit, sandbox)
        case "plugin":
            return of_plugins.read_plugin_captioner(path, device, limit, sandbox)
        case "adapter":
            raise InvalidCheckpoint(
                "expected a whole model, found an adapter: a service opens it with its base "
                "(`prescore submit`), or merge it (merge_and_unload, then save_pretrained)"
            )
    return read_checkpoint(path, device, limit)


def write_checkpoint(
    path: Path | str, model: CanonicalCaptioner, dtype: torch.dtype = torch.float32
) -> None:
    """Write a canonical checkpoint, completely or not at all."""
    tensors = {
        name: tensor.detach().to("cpu", dtype).contiguous()
        for name, tensor in model.tensors.items()
    }
    dtypes = {}
    if dtype == torch.bfloat16:
        tensors = {name: tensor.view(torch.uint16) for name, tensor in tensors.items()}
        dtypes = dict.fromkeys(tensors, "BF16")
    arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
    metadata = checkpoint_header.dump_checkpoint_metadata(model.description)
    tensor_files.write_tensors(Path(path), arrays, metadata, dtypes)
