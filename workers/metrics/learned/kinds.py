"""Kinds of learned metrics, by their families: how models' files are told and read, and scores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from service.contract.errors import MetricFailed, MetricUnavailable
from workers.metrics import model_files
from workers.metrics.accord import model as accord
from workers.metrics.family import (
    FamilyFunctions,
    FamilyMeasures,
    Floats,
    ScoreFamily,
    ScoringInput,
    Statistics,
)
from workers.metrics.learned import nneval, soundness


class LearnedScorer(Protocol):
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
class LearnedKind:
    """`mark`: the name in a file's metadata that tells it. `usual`: the model where none is
    brought, which takes tokens of any tokenizer; None: one has to be brought.
    """

    mark: str
    read: Callable[[Path], LearnedScorer]
    write: Callable[[Path, Any], None]
    shipped: Callable[[], LearnedScorer]
    usual: Callable[[], LearnedScorer] | None = None


KINDS: Mapping[str, LearnedKind] = {
    nneval.FAMILY: LearnedKind(
        nneval.MARK, nneval.read_nneval, nneval.write_nneval, nneval.load_shipped_nneval
    ),
    accord.FAMILY: LearnedKind(
        accord.MARK,
        accord.read_accord,
        accord.write_accord,
        accord.load_shipped_accord,
        accord.load_shipped_accord,
    ),
}


def find_family(path: Path) -> str:
    """The family whose model is in a file; MetricFailed where it is of none."""
    marks = model_files.read_marks(path)
    for family, kind in KINDS.items():
        if kind.mark in marks:
            return family
    raise MetricFailed(
        f"expected a model of {' or '.join(KINDS)} in {path.name}, found no mark of it"
    )


def read_sound_model(family: str, path: Path, score: ScoreFamily) -> LearnedScorer:
    """Read a model of this family; MetricFailed where it is none, or says nothing of captions."""
    found = KINDS[family].read(path)
    soundness.check_model(found, score)
    return found


def make_learned_family(name: str) -> FamilyFunctions:
    return FamilyFunctions(partial(_measure, name), _corpus, partial(_recipe, name))


def _measure(family: str, task: ScoringInput) -> FamilyMeasures:
    """Score captions by a model. The score has the name of the metric, or the name in the tool
    `name`, which may name the model. Raises MetricFailed if the model was trained otherwise,
    MetricUnavailable if something is missing.
    """
    model, usual = _model(family, task), KINDS[family].usual
    tokenizer = task.references.tokenizer
    if tokenizer != model.tokenizer and not (usual is not None and model is usual()):
        raise MetricUnavailable(
            f"{model.name} was trained with the tokenizer {model.tokenizer!r}, found references "
            f"of {tokenizer!r}; ask for {model.tokenizer!r}, or train a model with {tokenizer!r}"
        )
    values = {task.tools.get("name", family): model.says(task)}
    return FamilyMeasures(values, values)


def _corpus(statistics: Statistics) -> dict[str, float]:
    return {name: float(np.mean(values)) for name, values in statistics.items()}


def _recipe(family: str, task: ScoringInput) -> str:
    return f"model:{_model(family, task).digest[:12]}"


def _model(family: str, task: ScoringInput) -> LearnedScorer:
    brought: LearnedScorer | None = task.tools.get("model")
    usual = KINDS[family].usual
    if brought is not None:
        return brought
    if usual is None:
        raise MetricUnavailable(f"{family} needs a model, and was given none")
    return usual()
