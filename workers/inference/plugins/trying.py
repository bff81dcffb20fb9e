"""Tries a plug-in's captioner on made-up images and captions before it scores anything."""

import numpy as np
import torch

from service.contract.errors import PluginFailed
from workers.inference.packing import Packed, pack
from workers.inference.plugins.guarded import Guarded
from workers.inference.vocabulary import Encoded

_LENGTHS = (3, 1, 2)  # tokens of captions; the first and the last are of the same image
_IMAGES = (1, 2)  # captions of each image
_TWICE = ([0, 0], [1])  # one row becomes two, then the second one of them
_CLOSE = 1e-3  # of a probability; those of float32 differ by 1e-6


@torch.inference_mode()
def out(model: Guarded, feature_size: int) -> None:
    """Raise PluginFailed unless teacher forcing of captions and steps give the same
    log-probabilities, whichever captions are beside one another.
    """
    drawn = torch.Generator().manual_seed(0)
    features = torch.rand((len(_IMAGES), feature_size), generator=drawn).to(model.device)
    images = model.look(features)
    captions = _captions(model)
    packed = pack(captions, np.arange(len(_LENGTHS)), model.device)
    forced = model.output(model.hidden(images, packed)).log_softmax(1)
    stepped = _stepped(model, images, packed)
    apart = float((forced.exp() - stepped.exp()).abs().max())
    if not apart <= _CLOSE:
        raise PluginFailed(
            f"the plug-in {model.plugin}: expected `hidden` to give the probabilities that "
            f"`begin`, `step` and `select` give, found them {apart:.2g} apart"
        )


def _captions(model: Guarded) -> Encoded:
    """Of ids that are any, END last."""
    tokens = model.tokens
    ids = [at for at in range(tokens.size) if at not in (tokens.start, tokens.end)] or [tokens.end]
    words = [ids[place % len(ids)] for place in range(sum(_LENGTHS))]
    ends = np.cumsum(_LENGTHS)
    found = np.array(words, np.int64)
    found[ends - 1] = tokens.end
    offsets = np.concatenate([[0], ends]).astype(np.int64)
    of_images = np.concatenate([[0], np.cumsum(_IMAGES)]).astype(np.int64)
    return Encoded(found, offsets, of_images, tokens.start)


def _stepped(model: Guarded, images: torch.Tensor, captions: Packed) -> torch.Tensor:
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
