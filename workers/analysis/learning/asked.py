"""What every training of `accord` is asked for, and images' captions as it reads them."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from service.contract.errors import RequestRefused
from workers.metrics.accord import language
from workers.metrics.accord.language import Images
from workers.metrics.accord.training import Recipe
from workers.metrics.accord.words import stems_for
from workers.metrics.family import Score
from workers.metrics.java.jvm import Jvm
from workers.metrics.learned.fitting import Report
from workers.metrics.tokens import Tokenizer, tokenize

FEWEST = 50  # images with several captions: with fewer, hardly a word is known
MOST = 20_000  # images that are learned from: their captions stand beside each other in memory

People = Mapping[str, Sequence[str]]  # an image's name -> its captions


def silent(what: str, done: int, total: int) -> None:
    """A Report that does nothing."""


@dataclass(frozen=True, eq=False)
class Asked:
    """`score` scores captions by any family; `inputs` are digests, for the record."""

    jvm: Jvm
    score: Score
    tokenizer: Tokenizer
    recipe: Recipe = field(default_factory=Recipe)
    inputs: Mapping[str, str] = field(default_factory=dict)
    report: Report = silent

    def tokens(self, texts: Iterable[str]) -> dict[str, str]:
        """Each text with its tokens."""
        distinct = sorted(set(texts))
        told = partial(self.report, "tokens")
        return dict(
            zip(distinct, tokenize(distinct, self.tokenizer, self.jvm, progress=told), strict=True)
        )


@dataclass(frozen=True, eq=False)
class Spoken:
    """Captions of images as texts and as tokens; `stems`: how words are made stems."""

    texts: Sequence[Sequence[str]]
    said: Mapping[str, str]
    images: Images
    stems: str

    @classmethod
    def of(cls, people: People, asked: Asked) -> "Spoken":
        """Of so many images at most, drawn by their names. Raises RequestRefused if too few have
        several captions.
        """
        texts = [tuple(said) for said in _few_enough(people, asked.recipe.seed).values()]
        several = sum(len(said) > 1 for said in texts)
        if several < FEWEST:
            raise RequestRefused(
                f"expected at least {FEWEST} images with two captions or more to learn from, found "
                f"{several}: each caption is compared with the image's others"
            )
        said = asked.tokens(text for image in texts for text in image)
        images = [tuple(said[text] for text in image) for image in texts]
        return cls(texts, said, images, stems_for(said.values()))

    def language(self, tokenizer: Tokenizer) -> language.Language:
        return language.learn(self.images, tokenizer, self.stems)


def _few_enough(people: People, seed: int) -> People:
    def drawn(image: str) -> bytes:
        return hashlib.sha256(f"{seed} {image}".encode("utf-8", "surrogatepass")).digest()

    if len(people) <= MOST:
        return people
    kept = set(sorted(people, key=drawn)[:MOST])
    return {image: said for image, said in people.items() if image in kept}
