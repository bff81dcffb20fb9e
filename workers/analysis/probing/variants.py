"""People's first references with words replaced."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from workers.analysis.probing.material import Material, count, split


@dataclass(frozen=True)
class Variant:
    captions: Sequence[str]
    share: float  # of tokens replaced


def unknown(material: Material) -> str:
    """A word that no caption holds, for metrics that have no UNK."""
    words = {word.lower() for word in material.counts}
    found = "unk"
    while found in words:
        found += "k"
    return found


def replaced(captions: Sequence[str], words: Mapping[str, str]) -> Variant:
    """Replace every word in `words` by its new word, wherever it occurs."""
    tokens = [split(caption) for caption in captions]
    many = sum(token in words for found in tokens for token in found)
    total = sum(map(len, tokens))
    changed = [" ".join(words.get(token, token) for token in found) for found in tokens]
    return Variant(changed, many / max(1, total))


def rare(captions: Sequence[str], training: Mapping[str, int], fewer: int, word: str) -> Variant:
    """Replace words that training captions hold fewer times than `fewer`, or not at all."""
    known = count(captions)
    return replaced(captions, {token: word for token in known if training.get(token, 0) < fewer})


def at_random(
    captions: Sequence[str], places: Sequence[int], many: int, word: str, seed: int
) -> Variant:
    """Replace the tokens at `many` of the places, which are drawn with equal probability."""
    tokens = [token for caption in captions for token in split(caption)]
    chosen = np.random.default_rng(seed).choice(places, many, replace=False)
    for place in chosen.tolist():
        tokens[place] = word
    left = iter(tokens)
    changed = [" ".join(islice(left, len(split(caption)))) for caption in captions]
    return Variant(changed, many / max(1, len(tokens)))
