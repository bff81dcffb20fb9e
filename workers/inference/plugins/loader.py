"""Opens a checkpoint of a plug-in: judged first, its tensors read by us, its network built by the
plug-in, and tried out.
"""

import copy
import math
from functools import partial
from pathlib import Path

import numpy as np
import torch

from service.contract.errors import InvalidCheckpoint, PluginFailed
from service.contract.formats import plugins
from service.contract.formats.plugins import PluginHeader
from service.contract.settings import Sandbox
from workers.inference import checkpoint_checks, pieces, tokenizer_child
from workers.inference.packing import Packed, pack_captions
from workers.inference.plugins import registry
from workers.inference.plugins.base import CaptionerDescription
from workers.inference.plugins.guard import GuardedCaptioner
from workers.inference.vocabulary import CaptionerTokens, EncodedCaptions, WordTokens

_FLOAT32 = 4
_PROGRAM = 400_000_000  # torch, and what one call computes


def read_plugin_captioner(
    path: Path,
    device: torch.device | str = "cpu",
    limit: int | None = None,
    sandbox: Sandbox = "required",
) -> GuardedCaptioner:
    """The captioner in a file.

    Raises InvalidCheckpoint and OutOfMemory before a tensor is read; UnusableCheckpoint where a
    tensor's values are not finite, or the plug-in refuses them; PluginUnavailable and PluginFailed.
    """
    if not path.is_file():
        raise InvalidCheckpoint(f"expected a checkpoint of a plug-in, found nothing at {path}")
    header = plugins.read_plugin_header(path)
    device = torch.empty(0, device=device).device  # with its number
    tokens = _tokens(header, sandbox)  # which is wrong or right without the plug-in, too
    loaded = registry.load_plugin(header.plugin)
    _check_memory(header, device, limit)
    tensors = checkpoint_checks.read_finite_tensors(path, header.tensors, device)
    description = CaptionerDescription(
        tokens, header.encoder, header.feature_size, device, header.notes
    )
    config = copy.deepcopy(header.config)  # the plug-in's own, which it may change
    with registry.translate_failures(loaded.plugin, "building the network"), torch.no_grad():
        captioner = loaded.factory(config, tensors, description)
    found = GuardedCaptioner(loaded.plugin, captioner, tokens, header.encoder, device)
    try_captioner(found, header.feature_size)
    return found


def _check_memory(header: PluginHeader, device: torch.device, limit: int | None) -> None:
    """The tensors in float32, what the plug-in makes of them, and the file's pages."""
    count = sum(math.prod(each.shape) for each in header.tensors.values())
    stored = sum(each.end - each.start for each in header.tensors.values())
    needs = 2 * _FLOAT32 * count + stored + _PROGRAM
    checkpoint_checks.check_captioner_fits(header.parameters, needs, [device], limit)


def _tokens(header: PluginHeader, sandbox: Sandbox) -> CaptionerTokens:
    if isinstance(header.tokens, plugins.PluginWords):
        return WordTokens(header.tokens.vocabulary, header.tokens.tokenizer)
    open_tokenizer = partial(tokenizer_child.open_tokenizer, sandbox=sandbox)
    return pieces.read_plugin_pieces(header, open_tokenizer)


_LENGTHS = (3, 1, 2)  # tokens of captions; the first and the last are of the same image
_IMAGES = (1, 2)  # captions of each image
_TWICE = ([0, 0], [1])  # one row becomes two, then the second one of them
_CLOSE = 1e-3  # of a probability; those of float32 differ by 1e-6


@torch.inference_mode()
def try_captioner(model: GuardedCaptioner, feature_size: int) -> None:
    """Raise PluginFailed unless teacher forcing of captions and steps give the same
    log-probabilities, whichever captions are beside one another.
    """
    drawn = torch.Generator().manual_seed(0)
    features = torch.rand((len(_IMAGES), feature_size), generator=drawn).to(model.device)
    images = model.look(features)
    captions = _captions(model)
    packed = pack_captions(captions, np.arange(len(_LENGTHS)), model.device)
    forced = model.output(model.hidden(images, packed)).log_softmax(1)
    stepped = _stepped(model, images, packed)
    apart = float((forced.exp() - stepped.exp()).abs().max())
    if not apart <= _CLOSE:
        raise PluginFailed(
            f"the plug-in {model.plugin}: expected `hidden` to give the probabilities that "
            f"`begin`, `step` and `select` give, found them {apart:.2g} apart"
        )


def _captions(model: GuardedCaptioner) -> EncodedCaptions:
    """Encode captions of arbitrary ids, END last."""
    tokens = model.tokens
    ids = [at for at in range(tokens.size) if at not in (tokens.start, tokens.end)] or [tokens.end]
    words = [ids[place % len(ids)] for place in range(sum(_LENGTHS))]
    ends = np.cumsum(_LENGTHS)
    found = np.array(words, np.int64)
    found[ends - 1] = tokens.end
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    of_images = np.concatenate([[0], np.cumsum(_IMAGES)]).astype(np.int64)
    return EncodedCaptions(found, offsets, of_images, tokens.start)


def _stepped(model: GuardedCaptioner, images: torch.Tensor, captions: Packed) -> torch.Tensor:
    """Each caption alone, a word at a time."""
    found = torch.empty(len(captions.words), model.tokens.size, device=model.device)
    starts = np.concatenate([[0], np.cumsum(captions.counts)])
    for row in range(captions.counts[0]):
        state = model.begin(images[captions.image_rows[row : row + 1]])
        for time, count in enumerate(captions.counts):
            if row >= count:
                break
            place = int(starts[time]) + row
            hidden, state = model.step(state, captions.words[place : place + 1])
            for rows in _TWICE:  # as searches do
                state = model.select(state, torch.tensor(rows, device=model.device))
            found[place] = model.output(hidden).log_softmax(1)[0]
    return found
