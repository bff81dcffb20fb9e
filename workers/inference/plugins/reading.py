"""Opens a checkpoint of a plug-in: judged first, its tensors read by us, its network built by the
plug-in, and tried out.
"""

import copy
import math
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from service.contract.errors import InvalidCheckpoint, UnusableCheckpoint
from service.contract.formats import plugins
from service.contract.formats.plugins import PluginHeader
from workers.inference import memory
from workers.inference.captioners import finite
from workers.inference.plugins import guarding, installed, trying
from workers.inference.plugins.base import Description
from workers.inference.plugins.guarded import Guarded
from workers.inference.vocabulary import Tokens, Words

_FLOAT32 = 4
_PROGRAM = 400_000_000  # torch, and what one call computes


def read(path: Path, device: torch.device | str = "cpu", limit: int | None = None) -> Guarded:
    """The captioner in a file.

    Raises InvalidCheckpoint and OutOfMemory before a tensor is read; UnusableCheckpoint where a
    tensor's values are not finite, or the plug-in refuses them; PluginUnavailable and PluginFailed.
    """
    if not path.is_file():
        raise InvalidCheckpoint(f"expected a checkpoint of a plug-in, found nothing at {path}")
    header, device = plugins.read(path), torch.empty(0, device=device).device  # with its number
    loaded = installed.load(header.plugin)
    _check_memory(header, device, limit)
    tensors, tokens = _tensors(path, header, device), _tokens(header)
    description = Description(tokens, header.encoder, header.feature_size, device, header.notes)
    config = copy.deepcopy(header.config)  # the plug-in's own, which it may change
    with guarding.failures(loaded.plugin, "building the network"), torch.no_grad():
        captioner = loaded.factory(config, tensors, description)
    found = Guarded(loaded.plugin, captioner, tokens, header.encoder, device)
    trying.out(found, header.feature_size)
    return found


def _check_memory(header: PluginHeader, device: torch.device, limit: int | None) -> None:
    """The tensors in float32, what the plug-in makes of them, and the file's pages."""
    count = sum(math.prod(each.shape) for each in header.tensors.values())
    stored = sum(each.end - each.start for each in header.tensors.values())
    needs = 2 * _FLOAT32 * count + stored + _PROGRAM
    memory.check_captioner(header.parameters, needs, device, limit)


def _tensors(path: Path, header: PluginHeader, device: torch.device) -> dict[str, Tensor]:
    """All floating point ones in float32."""
    tensors: dict[str, Tensor] = {}
    try:
        with safe_open(path, framework="pt", device=str(device)) as file:
            for name in header.tensors:
                tensor = file.get_tensor(name)
                tensors[name] = tensor.float() if tensor.is_floating_point() else tensor
    except SafetensorError as error:
        raise UnusableCheckpoint(f"the tensors cannot be read: {error}") from None
    for name, tensor in tensors.items():
        finite.check(name, tensor)
    return tensors


def _tokens(header: PluginHeader) -> Tokens:
    if isinstance(header.tokens, plugins.Words):
        return Words(header.tokens.vocabulary, header.tokens.tokenizer)
    from workers.inference import pieces

    return pieces.of_plugin(header)
