"""Scores of a learned metric: how likely a person wrote each caption, and the mean of that."""

import numpy as np

from service.contract.errors import MetricFailed, MetricUnavailable
from service.contract.metrics import families
from service.contract.metrics.catalogue import LEARNED
from workers.metrics.family import TOOLS, Measured, Statistics, Task
from workers.metrics.learned import features
from workers.metrics.learned.features import Tools
from workers.metrics.learned.model import Model


def measure(task: Task) -> Measured:
    """Score captions by a model. The score has the name of the metric, or the name in the tool
    `name`, which may name the model. Raises MetricFailed if features are not computed as in the
    model's training, MetricUnavailable if something is missing.
    """
    model = _model(task)
    references = task.references
    if references.tokenizer != model.tokenizer:
        raise MetricUnavailable(
            f"{model.name} was trained with the tokenizer {model.tokenizer!r}, found references "
            f"of {references.tokenizer!r}; ask for {model.tokenizer!r}, or train a model with "
            f"{references.tokenizer!r}"
        )
    _check_needs(model, task)
    tools = Tools(task.others, task.jvm, model.frequencies, task.tools, task.progress)
    found = features.measure(model.features, task.captions, references, task.rows, tools)
    for expected, recipe in zip(model.recipes, found.recipes, strict=True):
        if recipe != expected:
            raise MetricFailed(
                f"{model.name} was trained with {expected}, here there is {recipe}: another score "
                "altogether; train it anew, or bring what it was trained with"
            )
    values = {task.tools.get("name", LEARNED): model.classifier(model.scaling(found.values))}
    return Measured(values, values)


def corpus(statistics: Statistics) -> dict[str, float]:
    return {name: float(np.mean(values)) for name, values in statistics.items()}


def recipe(task: Task) -> str:
    return f"model:{_model(task).digest[:12]}"


def _model(task: Task) -> Model:
    model: Model | None = task.tools.get("model")
    if model is None:
        raise MetricUnavailable("NNEval needs a model, and was given none")
    return model


def _check_needs(model: Model, task: Task) -> None:
    known = families.features()
    for feature in model.features:
        tools = (TOOLS[need] for need in families.needs(known[feature]) if need in TOOLS)
        if any(task.tools.get(tool) is None for tool in tools):
            raise MetricUnavailable(f"{model.name} needs what {feature} does, and was given none")
