"""Scores of learned metrics: what a model says of each caption, and the mean of that."""

from functools import partial

import numpy as np

from service.contract.errors import MetricUnavailable
from workers.metrics.family import Family, Measured, ScoringInput, Statistics
from workers.metrics.learned.kinds import KINDS, Model


def family(name: str) -> Family:
    return Family(partial(_measure, name), _corpus, partial(_recipe, name))


def _measure(family: str, task: ScoringInput) -> Measured:
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
    return Measured(values, values)


def _corpus(statistics: Statistics) -> dict[str, float]:
    return {name: float(np.mean(values)) for name, values in statistics.items()}


def _recipe(family: str, task: ScoringInput) -> str:
    return f"model:{_model(family, task).digest[:12]}"


def _model(family: str, task: ScoringInput) -> Model:
    brought: Model | None = task.tools.get("model")
    usual = KINDS[family].usual
    if brought is not None:
        return brought
    if usual is None:
        raise MetricUnavailable(f"{family} needs a model, and was given none")
    return usual()
