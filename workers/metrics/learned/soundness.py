"""Soundness of a learned metric: it must distinguish made-up captions, and put them in order.

`KINDS` of captions, from the best to none, of six made-up images with five references each. BLEU
and CIDEr-D are computed here; METEOR, SPICE and WMD (of vectors that were trained on captions)
stand in a table, since they need Java or files that not every machine has. So this takes 50 ms, and
whoever reads a model can ask.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from service.contract.errors import MetricFailed
from workers.metrics import references
from workers.metrics.family import Floats, ScoreFamily, ScoringInput
from workers.metrics.java.jvm import Jvm

SPREAD = 0.05  # from the first kind to the third, at least; a model that had collapsed had -2e-8
_EQUAL = 1e-9  # trees may say the same of two kinds, but nothing may turn them round

KINDS = (
    "a reference of the image",
    "another caption of the image",
    "a caption of another image",
    "words at random",
    "no words",
)

# Five references, then another caption. Words alone: every tokeniser makes the same of them.
_IMAGES = (
    (
        "a man riding a wave on top of a surfboard",
        "a surfer rides a large wave in the ocean",
        "a person on a surfboard in the water",
        "a man is surfing a big wave",
        "a young man in a black wetsuit on a surfboard",
        "a man surfing on a big wave in the ocean",
    ),
    (
        "two dogs run through the green grass",
        "two brown dogs are playing in a field",
        "a pair of dogs running across a lawn",
        "the dogs chase each other in the grass",
        "a brown dog and a white dog run outside",
        "two dogs running in the grass of a field",
    ),
    (
        "a woman cuts vegetables in a small kitchen",
        "a lady is preparing food on a wooden table",
        "a woman with a knife is chopping carrots",
        "a cook slices vegetables on a cutting board",
        "a woman in an apron makes a salad",
        "a woman is cutting carrots on a board in the kitchen",
    ),
    (
        "a red bus drives down a busy city street",
        "a double decker bus on a road with cars",
        "a large red bus is parked near a building",
        "the city bus is driving past tall buildings",
        "a bus full of people in the middle of traffic",
        "a red double decker bus driving down a street",
    ),
    (
        "a little girl holds a pink umbrella in the rain",
        "a child is standing under an umbrella",
        "a young girl walks in the rain with her umbrella",
        "a girl in yellow boots stands in a puddle",
        "a small child with an umbrella on a wet street",
        "a little girl standing in the rain with an umbrella",
    ),
    (
        "a group of people sit around a table with pizza",
        "friends eating pizza together at a restaurant",
        "several people share a pizza and drinks",
        "four young men are having dinner at a table",
        "people at a table with plates and glasses",
        "a group of friends eating pizza at a table",
    ),
)
_RANDOM = (
    "of paper cloud is seven moon",
    "a a a a a a",
    "moon to cloud and paper a",
    "seven from an of spoon cloud",
    "to is moon paper of the",
    "cloud seven a an paper to",
)
_REFERENCES = 5

# Of `captions()`, kind by kind and image by image; a test computes them.
_TABLE: Mapping[str, tuple[tuple[float, ...], ...]] = {
    "meteor": (
        (1.0000, 1.0000, 1.0000, 1.0000, 1.0000, 1.0000),
        (0.4246, 0.3153, 0.2290, 0.3390, 0.3411, 0.3182),
        (0.0927, 0.1077, 0.0469, 0.0732, 0.0421, 0.0587),
        (0.0269, 0.0494, 0.0260, 0.0234, 0.0525, 0.0292),
        (0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000),
    ),
    "spice": (
        (0.4444, 0.5000, 0.4000, 0.4000, 0.4828, 0.4667),
        (0.3846, 0.3810, 0.2581, 0.2069, 0.3448, 0.2667),
        (0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0714),
        (0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000),
        (0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000),
    ),
    "wmd": (
        (1.0000, 1.0000, 1.0000, 1.0000, 1.0000, 1.0000),
        (0.4161, 0.2762, 0.1282, 0.1814, 0.3101, 0.2450),
        (0.0125, 0.0124, 0.0129, 0.0197, 0.0142, 0.0112),
        (0.0121, 0.0000, 0.0140, 0.0124, 0.0193, 0.0176),
        (0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000),
    ),
}


def list_captions() -> list[str]:
    """The captions, kind by kind, image by image."""
    own = [image[0] for image in _IMAGES]
    others = [image[_REFERENCES] for image in _IMAGES]
    return [*own, *others, *others[1:], others[0], *_RANDOM, *("" for _ in _IMAGES)]


def list_references() -> list[tuple[str, ...]]:
    """The references, image by image."""
    return [image[:_REFERENCES] for image in _IMAGES]


@dataclass(frozen=True)
class SoundnessResult:
    """The mean score of each kind; all that is wrong with the model, in words."""

    means: Mapping[str, float]
    wrong: tuple[str, ...]


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


def judge_model(model: LearnedScorer, score: ScoreFamily) -> SoundnessResult:
    """Judge a model by the made-up captions; `score` scores captions by any family."""
    values = _scores(model, score)
    means = values.reshape(len(KINDS), -1).mean(axis=1)
    return SoundnessResult(
        dict(zip(KINDS, means.tolist(), strict=True)), tuple(_wrong(values, means))
    )


def check_model(model: LearnedScorer, score: ScoreFamily) -> None:
    """Raises MetricFailed, with the figures, for a model that says nothing of captions."""
    found = judge_model(model, score)
    if found.wrong:
        raise MetricFailed(
            f"this learned metric says nothing of captions: {'; '.join(found.wrong)}. Train it "
            "anew: with a smaller --beta, more epochs, or from other captions"
        )


def _wrong(values: Floats, means: Floats) -> list[str]:
    if not (np.isfinite(values).all() and values.min() >= 0 and values.max() <= 1):
        return [f"expected scores from 0 to 1, found {values.min():.4g} to {values.max():.4g}"]
    wrong = []
    spread = means[0] - means[2]
    if spread < SPREAD:
        wrong.append(
            f"expected a spread of at least {SPREAD:g} from {KINDS[2]} to {KINDS[0]}, found "
            f"{spread:.2g}"
        )
    for place in np.flatnonzero(np.diff(means) > _EQUAL):
        better, worse = KINDS[place], KINDS[place + 1]
        wrong.append(
            f"expected no higher score of {worse} than of {better}, found "
            f"{means[place + 1]:.8g} and {means[place]:.8g}"
        )
    return wrong


def _scores(model: LearnedScorer, score: ScoreFamily) -> Floats:
    """Score the made-up captions by the model, kind by kind, image by image."""
    prepared = references.index_tokens(list_references(), model.tokenizer)
    rows = np.tile(np.arange(len(_IMAGES)), len(KINDS))
    with Jvm() as unused:
        task = ScoringInput(
            list_captions(), rows, prepared, unused, tokenizer=model.tokenizer, others=score
        )
        return model.tried(task, _TABLE)
