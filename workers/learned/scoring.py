"""Scores of a learned metric: how likely a person wrote each caption, and the mean of that."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import MetricFailed, MetricUnavailable
from workers.control import Progress, Stop, never, silent
from workers.learned import features, network
from workers.learned.features import Tools
from workers.learned.model import Model
from workers.metrics.family import Floats
from workers.metrics.jvm import Jvm
from workers.metrics.references import References
from workers.metrics.scene_graphs import Parse
from workers.metrics.tokens import tokenize
from workers.metrics.word_vectors import WordVectors

VERSION = 1  # counts changes of the code that change results


class Scored(NamedTuple):
    """`captions`: P(human) of each; `corpus`: their mean."""

    corpus: float
    captions: Floats
    signature: str


def score(
    model: Model,
    captions: Sequence[str],
    references: References,
    rows: NDArray[np.integer[Any]],
    jvm: Jvm,
    *,
    vectors: WordVectors | None = None,
    parse: Parse | None = None,
    stop: Stop = never,
    progress: Progress = silent,
) -> Scored:
    """Captions are tokenised here, as the references were; rows[i] is the image that caption i
    answers. MetricFailed where references or features are not those that the model was trained
    with, MetricUnavailable where something is wanting.
    """
    tokens = tokenize(captions, references.tokenizer, jvm, stop=stop)
    return score_tokens(
        model,
        tokens,
        references,
        rows,
        jvm,
        vectors=vectors,
        parse=parse,
        stop=stop,
        progress=progress,
    )


def score_tokens(
    model: Model,
    tokens: Sequence[str],
    references: References,
    rows: NDArray[np.integer[Any]],
    jvm: Jvm,
    *,
    vectors: WordVectors | None = None,
    parse: Parse | None = None,
    stop: Stop = never,
    progress: Progress = silent,
) -> Scored:
    """`score` of captions that `tokenize` has seen already."""
    if references.tokenizer != model.tokenizer:
        raise MetricFailed(
            f"{model.name} was trained with the tokenizer {model.tokenizer!r}, found references "
            f"of {references.tokenizer!r}"
        )
    for name, given in (("wmd", vectors), ("spice", parse)):
        if name in model.features and given is None:
            raise MetricUnavailable(f"{model.name} needs what {name} does, and was given none")
    tools = Tools(jvm, model.frequencies, vectors, parse, stop, progress)
    found = features.measure(model.features, tokens, references, rows, tools)
    for expected, recipe in zip(model.recipes, found.recipes, strict=True):
        if recipe != expected:
            raise MetricFailed(
                f"{model.name} was trained with {expected}, here there is {recipe}: another score "
                "altogether; train it anew, or bring what it was trained with"
            )
    values = network.human(model.layers, model.scaling(found.values))
    return Scored(float(np.mean(values)), values, signature(model, references))


def signature(model: Model, references: References) -> str:
    return f"nneval|{references.signature}|model:{model.digest[:12]}|v:{VERSION}"
