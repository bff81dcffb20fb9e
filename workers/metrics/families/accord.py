"""The metric `accord`: how far a caption agrees with its references, learned from contrasts of
captions, not from judgements of people (`workers/metrics/accord`). It is made for English; with
another tokenizer than PTB it is the same sum of other words.
"""

import numpy as np

from workers.metrics.accord import features, model
from workers.metrics.family import Measured, Statistics, Task


def measure(task: Task) -> Measured:
    shipped = model.shipped()
    scores = shipped(features.measure(task, shipped.language))
    return Measured({"accord": scores}, {"accord": scores})


def corpus(statistics: Statistics) -> dict[str, float]:
    return {"accord": float(np.mean(statistics["accord"]))}


def recipe(_: Task) -> str:
    return f"model:{model.shipped().digest[:12]}"
