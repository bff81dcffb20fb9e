"""ROUGE-L by pycocoevalcap's scorer: beta 1.2, the best reference's precision and recall each."""

import numpy as np
from pycocoevalcap.rouge.rouge import Rouge

from workers.metrics.family import Measured, Statistics, Task


def measure(task: Task) -> Measured:
    scorer = Rouge()
    scores: list[float] = []
    for block in task.blocks():
        for place in block:
            found = scorer.calc_score([task.captions[place]], task.references_of(place))
            scores.append(float(found))
    values = np.array(scores, np.float64)
    return Measured({"rouge_l": values}, {"rouge_l": values})


def corpus(statistics: Statistics) -> dict[str, float]:
    return {"rouge_l": float(np.mean(statistics["rouge_l"]))}
