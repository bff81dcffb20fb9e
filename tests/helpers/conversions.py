"""What a public network computes of a few captions, and what the checkpoint made of it computes."""

import torch

import public_captioners as public
from builders import encoded
from workers.inference import checkpoints, scoring

CAPTIONS = [["a", "dog", "runs"], [], ["a", "zebra", "runs", "fast"], ["red"]]


def theirs(model, features):
    ids, start, end, unknown = public.ids(public.words(model))
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
