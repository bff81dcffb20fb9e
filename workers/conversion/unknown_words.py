"""Whether references become the model's words, which a wrong tokenizer breaks in silence."""

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from service.contract.formats import bundles
from service.contract.formats.checkpoint_header import UNK, Description
from service.contract.formats.words import TOKENIZERS

_CAPTIONS = 10_000  # that are looked at
_MUCH, _LESS = 0.02, 0.5  # of all words; of the share by the tokenizer that is chosen


def remark(bundle: Path, description: Description) -> str | None:
    """A sentence if another tokenizer leaves fewer than half as many words of a bundle's references
    unknown to the model.
    """
    known = set(description.vocabulary[UNK + 1 :])
    split = next(iter(bundles.count_splits(bundle)))
    items = bundles.read_split(bundle, split)
    captions = [*islice((text for item in items for text in item.references), _CAPTIONS)]
    shares = {name: _share(captions, name, known) for name in TOKENIZERS}
    own = shares[description.tokenizer]
    best = min(shares, key=lambda name: shares[name])
    if own < _MUCH or shares[best] > _LESS * own:
        return None
    return (
        f"{own:.1%} of the references' words ({split} of {bundle}) are unknown to the model by the "
        f"tokenizer {description.tokenizer}, and {shares[best]:.1%} by {best}: is `tokenizer` in "
        "the map right? With a wrong one its scores are wrong"
    )


def _share(captions: Iterable[str], tokenizer: str, known: set[str]) -> float:
    words: Sequence[str] = [word for text in captions for word in TOKENIZERS[tokenizer](text)]
    return sum(word not in known for word in words) / max(1, len(words))
