"""The captions of an evaluation with their scores, in files that are read in blocks."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from prescore.models.captions import Caption
from prescore.models.evaluations import Evaluation
from service.contract.errors import NotFound
from service.contract.formats.strict_json import replace_infinite
from service.contract.metrics.families import FAMILIES
from service.engine.service_parts import ServiceParts
from service.runs import base, evaluations, lacking, pairs
from service.runs.pairs import Index, Pair
from service.runs.tensor_files import TensorFile
from service.stored import datasets
from service.stored.datasets import PinnedSplit
from service.stored.splits import SplitFile, SplitItems

_BLOCK = 1000


@dataclass(frozen=True)
class Answered:
    """The captions of an evaluation and their scores so far, in files that are read in blocks."""

    pinned: PinnedSplit
    split: SplitFile
    path: Path  # of the captions
    files: Mapping[str, Path]  # of scores, by the tasks' names

    @property
    def items(self) -> SplitItems:
        return self.split.items

    @cached_property
    def index(self) -> Index:
        return pairs.index(self.path)

    @cached_property
    def scores(self) -> dict[str, tuple[TensorFile, str]]:
        """The file and the tensor of each metric that captions have scores of."""
        found = {}
        for path in self.files.values():
            file = TensorFile(path)
            for tensor in file.names:
                part, name = tensor.split("/")
                if part == "captions":
                    found[name] = file, tensor
        return found

    def column(self, name: str) -> list[float]:
        """A metric's scores of all captions."""
        file, tensor = self.scores[name]
        return file.rows(tensor, 0, file.header.tensors[tensor].shape[0])

    def rows(self, found: Sequence[Pair], start: int) -> list[Caption]:
        """Captions from place `start` of the file on, with their scores."""
        stop = start + len(found)
        return self._rows(
            found, {name: file.rows(at, start, stop) for name, (file, at) in self.scores.items()}
        )

    def some_rows(
        self, wanted: Sequence[int], only: Collection[str] | None = None
    ) -> list[Caption]:
        """The captions at these places of the file, with their scores: with these `only`, if they
        are given.
        """
        scores = self.scores.items() if only is None else [(at, self.scores[at]) for at in only]
        return self._rows(
            self.index.read(wanted), {name: file.some(at, wanted) for name, (file, at) in scores}
        )

    def _rows(self, found: Sequence[Pair], scores: Mapping[str, Sequence[float]]) -> list[Caption]:
        names = self.items.names([pair.place for pair in found])
        return [
            Caption(
                image=image,
                caption=pair.caption,
                scores={name: replace_infinite(values[at]) for name, values in scores.items()},
            )
            for at, (pair, (image, _)) in enumerate(zip(found, names, strict=True))
        ]

    def all_rows(self) -> Iterator[Caption]:
        start = 0
        for block in self._blocks():
            yield from self.rows(block, start)
            start += len(block)

    def named(self) -> Iterator[tuple[Pair, tuple[str, str | None]]]:
        """All captions, with name and id of their images."""
        for block in self._blocks():
            names = self.items.names([pair.place for pair in block])
            yield from zip(block, names, strict=True)

    def images(self) -> Iterator[str]:
        return (image for _, (image, _) in self.named())

    def captions(self) -> Iterator[str]:
        return (pair.caption for pair in pairs.read(self.path))

    def _blocks(self) -> Iterator[list[Pair]]:
        every = pairs.read(self.path)
        while block := list(islice(every, _BLOCK)):
            yield block


def of(parts: ServiceParts, identity: str) -> Answered:
    """An evaluation's captions with their scores; NotFound where there are none (yet)."""
    evaluation = evaluations.get(parts, identity)
    path = path_of(parts, identity)
    pinned = evaluations.pinned_of(parts, evaluation)
    split = datasets.open_pinned_split(parts.blobs, pinned)
    return Answered(pinned, split, path, _score_files(parts, evaluation))


def of_readable(parts: ServiceParts, identity: str) -> Answered:
    """The same, for an answer of all captions: raises BlobDamaged, before it begins, where one
    cannot be read.
    """
    found = of(parts, identity)
    _ = found.index
    return found


def _score_files(parts: ServiceParts, evaluation: Evaluation) -> dict[str, Path]:
    """The score files of the tasks that are done, by the tasks' names."""
    results = {
        task.name: base.result_of(parts.records, evaluation.id, task.name)
        for task in evaluation.tasks
        if task.status == "done" and task.kind in FAMILIES
    }
    return {name: parts.blobs.path(found, check=False) for name, found in results.items() if found}


def path_of(parts: ServiceParts, identity: str) -> Path:
    """The file of an evaluation's captions."""
    digest = evaluations.captions_of(parts, identity)
    if digest is None:
        found = evaluations.get(parts, identity)
        raise NotFound(lacking.told(found, "captions", task="captions"))
    return parts.blobs.path(digest, check=False)
