"""A split's captions as tokens, and its reference sets, complete or without one column."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property

from service.contract.errors import MetricFailed
from workers.metrics import references as reference_sets
from workers.metrics.java.jvm import Jvm
from workers.metrics.references import References
from workers.metrics.tokens import Tokenizer, tokenize


class Material:
    """Captions as tokens joined by blanks: people's captions image by image, a system's caption of
    each image, training captions in any order. Reference sets are prepared once.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        references: Sequence[Sequence[str]],
        outputs: Sequence[str] | None = None,
        training: Sequence[str] | None = None,
    ) -> None:
        if outputs is not None and len(outputs) != len(references):
            raise MetricFailed(
                f"expected a caption for each of {len(references)} images, found {len(outputs)}"
            )
        self.tokenizer = tokenizer
        self.references = references
        self.outputs = outputs
        self.training = training
        self._rest: dict[int, References] = {}

    @cached_property
    def several(self) -> list[int]:
        """The images with at least two references, so that one can be compared with the rest."""
        return [image for image, found in enumerate(self.references) if len(found) > 1]

    @property
    def columns(self) -> int:
        """The lowest number of references among the images in `several`."""
        return min((len(self.references[image]) for image in self.several), default=0)

    @cached_property
    def complete(self) -> References:
        return reference_sets.from_tokens(self.references, self.tokenizer)

    @cached_property
    def counts(self) -> Counter[str]:
        """How often a token occurs in all references."""
        return count(caption for captions in self.references for caption in captions)

    def column(self, number: int) -> list[str]:
        return [self.references[image][number] for image in self.several]

    def rest(self, number: int) -> References:
        """The reference sets of the images in `several`, without a column."""
        if number not in self._rest:
            chosen = (self.references[image] for image in self.several)
            left = [[*found[:number], *found[number + 1 :]] for found in chosen]
            self._rest[number] = reference_sets.from_tokens(left, self.tokenizer)
        return self._rest[number]


def prepare(
    references: Sequence[Sequence[str]],
    tokenizer: Tokenizer,
    jvm: Jvm,
    *,
    outputs: Sequence[str] | None = None,
    training: Sequence[str] | None = None,
) -> Material:
    """Make the material from captions as they were written."""
    flat = [caption for captions in references for caption in captions]
    tokens = iter(tokenize(flat, tokenizer, jvm))
    people = [[next(tokens) for _ in captions] for captions in references]
    said, learned = (
        None if texts is None else tokenize(texts, tokenizer, jvm) for texts in (outputs, training)
    )
    return Material(tokenizer, people, said, learned)


def count(captions: Iterable[str]) -> Counter[str]:
    return Counter(token for caption in captions for token in split(caption))


def split(caption: str) -> list[str]:
    return caption.split(" ") if caption else []
