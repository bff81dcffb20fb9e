"""Prices of tasks: seconds, roughly, of one of two shared cores. Pure.

A caller's turns follow from prices, and tasks are cut so that no part holds others up for long. The
figures are measured (LSTM, words 500 to 30,000, size 32 to 1,024, beam 1 to 100): a search for
captions is within a third of its price, if no caption ends early.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from service.contract.metrics.families import FAMILIES
from service.contract.plan.tasks import OTHER_KINDS, Task

PART_SECONDS = 20.0  # parts are cut so that none takes longer, where blocks allow it
SHORT_SECONDS = 4.0  # what takes no longer is performed beside what does
_ROW = 25e-6  # a word of a hypothesis, besides its products
_RATE = 9e10  # operations a second of products
_LOOKED, _READ = 1e-9, 5e-10  # a word's attention to a place: of a key's value, of the place's own
_PICTURE_RATE = 3e11  # the same of a picture's, which are larger
_STEP = 1.5e-3  # a word of a block's images
_WORDS = 12  # of a reference, with its end
_PREFIX = 3  # words of an image
_JOINED = 0.05  # whatever is read, joined and written
_CONVERTED = 5.0  # a checkpoint of another form, in a process of its own
# Tasks on an image's references; tuples may be those of captions.
_OF_REFERENCES = frozenset({"references", "tuples", "embedded_references", "reference_sentences"})


@dataclass(frozen=True)
class TaskSizes:
    """Sizes from which tasks are priced; a model of this size and vocabulary, if any."""

    images: int = 1000
    references: float = 5.0  # of an image
    size: int = 512
    vocabulary: int = 10_000
    speed: float = 1.0
    places: int = 0  # that each word looks at
    place_size: int = 0
    picture_products: int = 0  # multiply-adds of an image, where it is no vector of features
    reference_words: float = 11.0  # of a reference
    caption_words: float = 11.0  # of a caption that is scored

    @property
    def word(self) -> float:
        """A word of one caption, by the model."""
        own = self.size * (8 * self.size + self.vocabulary)
        looking = self.places * (_LOOKED * self.size + _READ * self.place_size)
        return (_ROW + 2 * own / _RATE + looking) / self.speed

    @property
    def looked_at(self) -> float:
        """Seconds of computing once what belongs to an image's places."""
        return 2 * self.places * self.place_size * self.size / _RATE / self.speed

    @property
    def image(self) -> float:
        """Seconds of computing once what belongs to an image's places and its picture."""
        return self.looked_at + 2 * self.picture_products / _PICTURE_RATE / self.speed

    @property
    def columns(self) -> float:
        """All references of an image."""
        return self.image + self.references * _WORDS * self.word


USUAL = TaskSizes()


def estimate_model_size(parameters: int, vocabulary: int) -> int:
    """The size of a model of words in `Sizes` that multiplies as much for each word."""
    return int((math.sqrt(vocabulary**2 + 32 * parameters) - vocabulary) / 16)


def price_search(sizes: TaskSizes, images: int, block: int, beam: int, max_words: int) -> float:
    """Captions of so many images, which are decoded in blocks, if none ends early."""
    steps = math.ceil(images / block) * max_words
    words = beam * max_words * sizes.word
    return steps * _STEP / sizes.speed + images * (sizes.image + words)


def limit_part_images(wanted: int, block: int, seconds: float) -> int:
    """The images of a part: as many as wanted, or fewer where a block takes `seconds`. At least a
    block.
    """
    return block * max(1, min(wanted // block, int(PART_SECONDS / seconds)))


def price_tasks(tasks: Iterable[Task], sizes: TaskSizes) -> list[Task]:
    """Price the tasks: copies with their prices."""
    return [replace(task, price=price_task(task, sizes)) for task in tasks]


def price_task(task: Task, sizes: TaskSizes) -> float:
    if task.parts:
        return _JOINED
    if task.kind == "checkpoint":
        return _CONVERTED
    if "places" in task.parameters:
        return _JOINED + OTHER_KINDS[task.kind].caption * len(task.parameters["places"])
    start, stop = task.parameters.get("images", (0, sizes.images))
    return _JOINED + _image(task, sizes) * float(stop - start)


def _image(task: Task, sizes: TaskSizes) -> float:
    """The price of one image."""
    match task.kind:
        case "captions":
            asked = task.parameters["decoding"]
            return sizes.image + sizes.word * float(asked["beam"] * asked["max_words"])
        case "columns":
            return sizes.columns
        case "prefix":
            return sizes.looked_at + _PREFIX * sizes.word
        case kind if kind in _OF_REFERENCES and "captions" not in task.inputs:
            return sizes.references * OTHER_KINDS[task.kind].caption
    if (family := FAMILIES.get(task.kind)) is None:
        return OTHER_KINDS[task.kind].caption
    pairs = sizes.caption_words * sizes.reference_words * sizes.references
    return family.caption + family.pair * pairs
