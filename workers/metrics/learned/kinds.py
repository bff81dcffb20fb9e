"""The kinds of learned metrics, by their families: how models' files are told and read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from service.contract.errors import MetricFailed
from workers.metrics import model_files
from workers.metrics.accord import model as accord
from workers.metrics.family import Floats, Score, ScoringInput
from workers.metrics.learned import model as nneval
from workers.metrics.learned import soundness


class Model(Protocol):
    """A model of any kind. `features`: the metrics whose scores it is made of."""

    @property
    def digest(self) -> str: ...

    @property
    def name(self) -> str:
        """The metric's name in requests, with the digits of the model."""

    @property
    def tokenizer(self) -> str: ...

    @property
    def features(self) -> tuple[str, ...]: ...

    @property
    def card(self) -> dict[str, Any]:
        """A description for people, as JSON."""

    def says(self, task: ScoringInput) -> Floats:
        """The scores of a task's captions."""

    def tried(self, task: ScoringInput, table: Mapping[str, Any]) -> Floats:
        """The scores of made-up captions; the metrics in `table` are not computed."""


@dataclass(frozen=True)
class Kind:
    """`mark`: the name in a file's metadata that tells it. `usual`: the model where none is
    brought, which takes tokens of any tokenizer; None: one has to be brought.
    """

    mark: str
    read: Callable[[Path], Model]
    write: Callable[[Path, Any], None]
    shipped: Callable[[], Model]
    usual: Callable[[], Model] | None = None


KINDS: Mapping[str, Kind] = {
    nneval.FAMILY: Kind(nneval.MARK, nneval.read, nneval.write, nneval.shipped),
    accord.FAMILY: Kind(accord.MARK, accord.read, accord.write, accord.shipped, accord.shipped),
}


def family_of(path: Path) -> str:
    """The family whose model is in a file; MetricFailed where it is of none."""
    marks = model_files.marks(path)
    for family, kind in KINDS.items():
        if kind.mark in marks:
            return family
    raise MetricFailed(
        f"expected a model of {' or '.join(KINDS)} in {path.name}, found no mark of it"
    )


def sound(family: str, path: Path, score: Score) -> Model:
    """Read a model of this family; MetricFailed where it is none, or says nothing of captions."""
    found = KINDS[family].read(path)
    soundness.check(found, score)
    return found
