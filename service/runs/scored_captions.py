"""Captions of an evaluation with their scores, in files that are read in blocks."""

import json
import os
import re
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from prescore.models.captions import Caption
from prescore.models.evaluations import Evaluation
from service.contract.errors import BlobDamaged, NotFound
from service.contract.formats.strict_json import replace_infinite
from service.contract.metrics.families import FAMILIES
from service.engine.service_parts import ServiceParts
from service.runs import caption_words, evaluations, run_store
from service.runs.tensor_files import TensorFile
from service.stored import datasets
from service.stored.datasets import PinnedSplit
from service.stored.splits import SplitFile, SplitItems

_PAIR = re.compile(rb'\s*\[\s*([0-9]+)\s*,\s*("[^"\\]*(?:\\.[^"\\]*)*")\s*\]\s*([,\]])', re.DOTALL)
_EMPTY = re.compile(rb"\s*\[\s*\]\s*")
_CHUNK = 1 << 18
_LONGEST = 1 << 20  # bytes of a pair; limits.CAPTION characters take 120,000 at most


@dataclass(frozen=True, slots=True)
class CaptionPair:
    place: int
    caption: str
    following: int | None  # the byte at which the next pair can be read; None after the last


def read_pairs(path: Path, start: int = 0) -> Iterator[CaptionPair]:
    """The pairs from the byte `start` on; BlobDamaged where there is none that can be read."""
    for found, _, end in _find_pairs(path, start):
        is_last = found[3] == b"]"
        yield CaptionPair(int(found[1]), json.loads(found[2]), None if is_last else end)


@dataclass(frozen=True)
class PairIndex:
    """Places of the pairs in a file of captions, so that single ones are read without the others.

    `starts`: the byte at which each begins, and at last the size of the file.
    """

    path: Path
    places: Sequence[int]  # in the split
    starts: Sequence[int]

    def read(self, wanted: Sequence[int]) -> list[CaptionPair]:
        """The pairs at these places of the file."""
        with self.path.open("rb") as stream:
            return [self._read(stream.fileno(), at) for at in wanted]

    def _read(self, file: int, at: int) -> CaptionPair:
        start, end = self.starts[at], self.starts[at + 1]
        found = _PAIR.match(os.pread(file, end - start, start))
        assert found is not None, f"{self.path.name} has changed"
        is_last = at + 1 == len(self.places)
        return CaptionPair(self.places[at], json.loads(found[2]), None if is_last else end)


def index_pairs(path: Path) -> PairIndex:
    """Look through a file; no caption is decoded."""
    places, starts = array("q"), array("q")
    for found, start, _ in _find_pairs(path, 0):
        places.append(int(found[1]))
        starts.append(start)
    starts.append(path.stat().st_size)
    return PairIndex(path, places, starts)


def _find_pairs(path: Path, start: int) -> Iterator[tuple[re.Match[bytes], int, int]]:
    """Each pair from a byte on, with the bytes of its start and of its end."""
    with path.open("rb") as stream:
        stream.seek(start)
        data = stream.read(_CHUNK)
        if start == 0 and _EMPTY.fullmatch(data):
            return
        at = data.find(b"[") + 1 if start == 0 else 0
        while True:
            found = _PAIR.match(data, at)
            if found is None:
                more = stream.read(_CHUNK)
                if not more or len(data) - at > _LONGEST:
                    raise BlobDamaged(
                        path.name,
                        f"expected captions of at most {_LONGEST:,} bytes in the stored file, "
                        f"found none at byte {start + at}: they cannot be shown",
                    )
                start += at
                data, at = data[at:] + more, 0
                continue
            yield found, start + at, start + found.end()
            at = found.end()
            if found[3] == b"]":
                return


_BLOCK = 1000

NamedPair = tuple[CaptionPair, tuple[str, str | None]]  # name and id of the image


@dataclass(frozen=True)
class ScoredCaptions:
    """The captions of an evaluation and their scores so far, in files that are read in blocks."""

    pinned: PinnedSplit
    split: SplitFile
    path: Path  # of the captions
    files: Mapping[str, Path]  # of scores, by the tasks' names

    @property
    def items(self) -> SplitItems:
        return self.split.items

    @cached_property
    def index(self) -> PairIndex:
        return index_pairs(self.path)

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

    def rows(self, found: Sequence[CaptionPair], start: int) -> list[Caption]:
        """Captions from place `start` of the file on, with their scores."""
        stop = start + len(found)
        return self._rows(
            found, {name: file.rows(at, start, stop) for name, (file, at) in self.scores.items()}
        )

    def some_rows(
        self, wanted: Sequence[int], only: Collection[str] | None = None
    ) -> list[Caption]:
        """The captions at these places of the file, with their scores: with these `only`, if they
        are given, and then without words of references.
        """
        scores = self.scores.items() if only is None else [(at, self.scores[at]) for at in only]
        return self._rows(
            self.index.read(wanted),
            {name: file.some(at, wanted) for name, (file, at) in scores},
            with_words=only is None,
        )

    def _rows(
        self,
        found: Sequence[CaptionPair],
        scores: Mapping[str, Sequence[float]],
        *,
        with_words: bool = True,
    ) -> list[Caption]:
        names = self.items.names([pair.place for pair in found])
        references = self._references(found) if with_words else [()] * len(found)
        rows = []
        for at, (pair, (image, _), texts) in enumerate(zip(found, names, references, strict=True)):
            words = caption_words.compare_words(pair.caption, texts)
            rows.append(
                Caption(
                    image=image,
                    caption=pair.caption,
                    scores={name: replace_infinite(values[at]) for name, values in scores.items()},
                    nearest=words.nearest,
                    invented=words.invented,
                    missed=words.missed,
                    matched=words.matched,
                )
            )
        return rows

    def _references(self, found: Sequence[CaptionPair]) -> Iterator[tuple[str, ...]]:
        return self.items.references([pair.place for pair in found])

    def all_rows(self) -> Iterator[Caption]:
        start = 0
        for block in self._blocks():
            yield from self.rows(block, start)
            start += len(block)

    def named(self) -> Iterator[NamedPair]:
        """All captions, with name and id of their images."""
        for block in self._blocks():
            yield from self._named(block)

    def some_named(self, wanted: Sequence[int]) -> Iterator[NamedPair]:
        """The captions at these places of the file, with name and id of their images."""
        return self._named(self.index.read(wanted))

    def _named(self, found: Sequence[CaptionPair]) -> Iterator[NamedPair]:
        return zip(found, self.items.names([pair.place for pair in found]), strict=True)

    def with_references(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """All captions, with the references of their images."""
        for block in self._blocks():
            for pair, references in zip(block, self._references(block), strict=True):
                yield pair.caption, references

    def images(self) -> Iterator[str]:
        return (image for _, (image, _) in self.named())

    def captions(self) -> Iterator[str]:
        return (pair.caption for pair in read_pairs(self.path))

    def _blocks(self) -> Iterator[list[CaptionPair]]:
        every = read_pairs(self.path)
        while block := list(islice(every, _BLOCK)):
            yield block


def find_scored_captions(parts: ServiceParts, identity: str) -> ScoredCaptions:
    """An evaluation's captions with their scores; NotFound where there are none (yet)."""
    evaluation = evaluations.get_evaluation(parts, identity)
    path = find_captions_path(parts, identity)
    pinned = evaluations.find_split(parts, evaluation)
    split = datasets.open_pinned_split(parts.blobs, pinned)
    return ScoredCaptions(pinned, split, path, _score_files(parts, evaluation))


def find_readable_captions(parts: ServiceParts, identity: str) -> ScoredCaptions:
    """The same, for an answer of all captions: raises BlobDamaged, before it begins, where one
    cannot be read.
    """
    found = find_scored_captions(parts, identity)
    _ = found.index
    return found


def _score_files(parts: ServiceParts, evaluation: Evaluation) -> dict[str, Path]:
    """The score files of the tasks that are done, by the tasks' names."""
    results = {
        task.name: run_store.find_result(parts.records, evaluation.id, task.name)
        for task in evaluation.tasks
        if task.status == "done" and task.kind in FAMILIES
    }
    return {name: parts.blobs.path(found, check=False) for name, found in results.items() if found}


def find_captions_path(parts: ServiceParts, identity: str) -> Path:
    """The file of an evaluation's captions."""
    digest = evaluations.find_captions(parts, identity)
    if digest is None:
        found = evaluations.get_evaluation(parts, identity)
        raise NotFound(run_store.explain_missing(found, "captions", task="captions"))
    return parts.blobs.path(digest, check=False)
