"""Kinds of learned metrics, by their families: detection and reading of models' files, scores."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from service.contract.errors import MetricFailed, MetricUnavailable
from workers.metrics import model_files
from workers.metrics.accord import model as accord
from workers.metrics.family import (
    FamilyFunctions,
    FamilyMeasures,
    ScoreFamily,
    ScoringInput,
)
from workers.metrics.learned import nneval, soundness
from workers.metrics.learned.soundness import LearnedScorer


@dataclass(frozen=True)
class LearnedKind:
    """`mark` in a file's metadata; `usual`: the model, for any tokenizer, where none is brought."""

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
    return FamilyFunctions(partial(_measure, name), partial(_recipe, name))


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
    return FamilyMeasures.of_scores(task.tools.get("name", family), model.says(task))


def _recipe(family: str, task: ScoringInput) -> str:
    return f"model:{_model(family, task).digest[:12]}"


def _model(family: str, task: ScoringInput) -> LearnedScorer:
    usual = KINDS[family].usual
    if usual is not None and task.tools.get("model") is None:
        return usual()
    model: LearnedScorer = task.require_tool("model", f"{family} needs a model, and was given none")
    return model
