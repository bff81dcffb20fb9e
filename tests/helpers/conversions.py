"""Probabilities of a few captions by a public network, and by the checkpoint made of it."""

import torch

from helpers import public_captioners as public
from helpers.builders import encoded
from workers.inference import checkpoints, scoring

CAPTIONS = [["a", "dog", "runs"], [], ["a", "zebra", "runs", "fast"], ["red"]]


def theirs(model, features, words=None):
    ids, start, end, unknown = public.ids(words or public.words(model))
    with torch.no_grad():
        for image in features:
            for caption in CAPTIONS:
                words = [ids.get(word, unknown) for word in caption]
                logp = model(image, [start, *words])
                yield from logp[range(len(words) + 1), [*words, end]].tolist()


def ours(path, features):
    model = checkpoints.read_checkpoint(path)
    ids = {word: at for at, word in enumerate(model.description.vocabulary)}
    references = [[[ids.get(word, 1) for word in each] for each in CAPTIONS] for _ in features]
    return scoring.compute_columns(model, features.numpy(), encoded(references)).logp
