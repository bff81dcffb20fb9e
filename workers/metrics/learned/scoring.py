"""Scores of a learned metric: how likely a person wrote each caption, and the mean of that."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import MetricFailed, MetricUnavailable
from service.contract.metrics.catalogue import LEARNED
from workers.metrics.java.jvm import Jvm
from workers.metrics.learned import features
from workers.metrics.learned.features import Tools
from workers.metrics.learned.model import Model
from workers.metrics.postgen import Scores
from workers.metrics.references import References
from workers.metrics.scenes.scene_graphs import Parse
from workers.metrics.vectors.word_vectors import WordVectors
from workers.progress import Progress, Stop, never, silent

VERSION = 1  # counts changes of the code that change results


def score_tokens(
    tokens: Sequence[str],
    references: References,
    rows: NDArray[np.integer[Any]],
    jvm: Jvm,
    *,
    model: Model | None = None,
    name: str = LEARNED,
    vectors: WordVectors | None = None,
    parse: Parse | None = None,
    stop: Stop = never,
    progress: Progress = silent,
) -> Scores:
    """Captions are tokens, as the references are; rows[i] is the image that caption i answers.
    The score is called `name`. MetricFailed where features are not computed as the model was
    trained, MetricUnavailable where something is wanting.
    """
    if model is None:
        raise MetricUnavailable("NNEval needs a model, and was given none")
    if references.tokenizer != model.tokenizer:
        raise MetricUnavailable(
            f"{model.name} was trained with the tokenizer {model.tokenizer!r}, found references "
            f"of {references.tokenizer!r}; ask for {model.tokenizer!r}, or train a model with "
            f"{references.tokenizer!r}"
        )
    for feature, given in (("wmd", vectors), ("spice", parse)):
        if feature in model.features and given is None:
            raise MetricUnavailable(f"{model.name} needs what {feature} does, and was given none")
    tools = Tools(jvm, model.frequencies, vectors, parse, stop, progress)
    found = features.measure(model.features, tokens, references, rows, tools)
    for expected, recipe in zip(model.recipes, found.recipes, strict=True):
        if recipe != expected:
            raise MetricFailed(
                f"{model.name} was trained with {expected}, here there is {recipe}: another score "
                "altogether; train it anew, or bring what it was trained with"
            )
    values = model.classifier(model.scaling(found.values))
    each = {name: values}
    signature = f"{LEARNED}|{references.signature}|model:{model.digest[:12]}|v:{VERSION}"
    return Scores(LEARNED, {name: float(np.mean(values))}, each, each, {name: signature})
