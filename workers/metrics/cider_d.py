"""CIDEr-D by pycocoevalcap's scorer, its document frequencies those of the whole split.

A split of one image gives 0 by construction: the logarithm of the number of images is 0.
"""

import numpy as np
from pycocoevalcap.cider.cider_scorer import CiderScorer

from workers.metrics.family import Measured, Statistics, Task


def measure(task: Task) -> Measured:
    images = task.references.images
    scores: list[float] = []
    for block in task.blocks(largest=images):
        scorer = CiderScorer(n=4, sigma=6.0)
        for place in block:
            scorer += (task.captions[place], task.references_of(place))
        # The scorer takes the number of images from the length of this list, which it reads no
        # further than there are captions: filled up, a part is scored as the whole would be.
        scorer.crefs += [[]] * (images - len(block))
        scorer.document_frequency = task.references.frequencies
        scores += [float(score) for score in scorer.compute_cider()]
    values = np.array(scores, np.float64)
    return Measured({"cider_d": values}, {"cider_d": values})


def corpus(statistics: Statistics) -> dict[str, float]:
    return {"cider_d": float(np.mean(statistics["cider_d"]))}
