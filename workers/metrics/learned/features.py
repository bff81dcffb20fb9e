"""What the learned metric sees of a caption: other metrics' scores, brought to [-1, 1]."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.contract.errors import MetricFailed, UnknownMetric
from workers.metrics import postgen, references
from workers.metrics.family import Floats
from workers.metrics.frequencies import Frequencies
from workers.metrics.java.jvm import Jvm
from workers.metrics.references import References
from workers.metrics.scenes.scene_graphs import Parse
from workers.metrics.tokens import Tokenizer, tokenize
from workers.metrics.vectors.word_vectors import WordVectors
from workers.progress import Progress, Stop, never, silent

_FAMILIES: Mapping[str, str] = {
    "bleu_1": "bleu",
    "bleu_2": "bleu",
    "bleu_3": "bleu",
    "bleu_4": "bleu",
    "cider_d": "cider_d",
    "meteor": "meteor",
    "spice": "spice",
    "wmd": "wmd",
}
NAMES = tuple(_FAMILIES)
OF_CAPTIONS_ALONE = ("bleu_1", "bleu_2", "bleu_3", "bleu_4", "cider_d", "meteor")  # no assets


@dataclass(frozen=True)
class Measured:
    """`values` (captions, features); `recipes` say how each was computed, references left aside."""

    values: Floats
    recipes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Tools:
    """What features are computed with; `vectors` are for WMD, `parse` for SPICE."""

    jvm: Jvm
    frequencies: Frequencies
    vectors: WordVectors | None = None
    parse: Parse | None = None
    stop: Stop = never
    progress: Progress = silent


@dataclass(frozen=True, eq=False)
class Scaling:
    """From what was seen in training; what lies outside is clipped."""

    low: Floats
    high: Floats

    @classmethod
    def of(cls, values: Floats) -> "Scaling":
        return cls(values.min(axis=0), values.max(axis=0))

    def __call__(self, values: Floats) -> Floats:
        """A feature that never varied says nothing: 0."""
        width = self.high - self.low
        shares = np.divide(values - self.low, width, out=np.full_like(values, 0.5), where=width > 0)
        scaled: Floats = np.clip(2 * shares - 1, -1, 1)
        return scaled


def check(names: Sequence[str]) -> None:
    unknown = [name for name in names if name not in _FAMILIES]
    if unknown or not names or len(set(names)) < len(names):
        raise UnknownMetric(
            f"expected different features of {', '.join(NAMES)}, found "
            f"{', '.join(map(repr, unknown or names)) or 'none'}"
        )


def measure(
    names: Sequence[str],
    tokens: Sequence[str],
    prepared: References,
    rows: NDArray[np.integer[Any]],
    tools: Tools,
) -> Measured:
    """Of tokenised captions: rows[i] is the image that caption i answers."""
    check(names)
    columns: dict[str, Floats] = {}
    signatures: dict[str, str] = {}
    for family in dict.fromkeys(_FAMILIES[name] for name in names):
        found = postgen.score_tokens(
            family,
            tokens,
            prepared,
            rows,
            tools.jvm,
            parse=tools.parse,
            vectors=tools.vectors,
            idf=tools.frequencies,
            stop=tools.stop,
            progress=tools.progress,
        )
        columns |= found.captions
        signatures |= found.signatures
    recipes = tuple(re.sub(r"\|refs:[^|]*", "", signatures[name]) for name in names)
    return Measured(np.stack([columns[name] for name in names], axis=1), recipes)


def measure_texts(
    names: Sequence[str],
    captions: Sequence[str],
    reference_sets: Sequence[tuple[str, ...]],
    tokenizer: Tokenizer,
    tools: Tools,
) -> Measured:
    """Each caption beside a reference set of its own; a set that repeats is analysed once."""
    if not captions or len(captions) != len(reference_sets):
        raise MetricFailed(
            f"expected captions with a reference set for each, found {len(captions)} and "
            f"{len(reference_sets)}"
        )
    distinct = {each: place for place, each in enumerate(dict.fromkeys(reference_sets))}
    prepared = references.prepare(list(distinct), tokenizer, tools.jvm, stop=tools.stop)
    tokens = tokenize(captions, tokenizer, tools.jvm, stop=tools.stop)
    rows = np.array([distinct[each] for each in reference_sets], np.int64)
    return measure(names, tokens, prepared, rows, tools)
