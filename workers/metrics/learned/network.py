"""Network of NNEval, which separates people's captions from machines', in numpy alone.

It has hidden layers with ReLU, and softmax over {machine, human}; without a hidden layer it is
logistic regression.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from workers.metrics.family import Floats
from workers.metrics.marked_files import Tensors

Layers = Sequence[tuple[Floats, Floats]]  # weights (in, out) and biases (out)

CLASSES = 2  # machine, human


@dataclass(frozen=True)
class HumanClassifier:
    layers: Layers

    def __call__(self, values: Floats) -> Floats:
        """The probability that a person wrote it, for each row of features. No matrix product is
        used, because its last bits depend on the number of its rows.
        """
        for weights, biases in self.layers[:-1]:
            values = np.maximum(np.einsum("ij,jk->ik", values, weights) + biases, 0.0)
        weights, biases = self.layers[-1]
        logits = np.einsum("ij,jk->ik", values, weights) + biases
        return sigmoid(logits[:, 1] - logits[:, 0])

    def tensors(self) -> Tensors:
        return {
            f"layers/{place}/{name}": values
            for place, layer in enumerate(self.layers)
            for name, values in zip(("weights", "biases"), layer, strict=True)
        }


def restore_network(tensors: Tensors, inputs: int) -> HumanClassifier:
    """Take the layers out of `tensors`; ValueError if they do not lead to two classes."""
    count = sum(name.startswith("layers/") for name in tensors) // 2
    found = [
        (tensors.pop(f"layers/{place}/weights"), tensors.pop(f"layers/{place}/biases"))
        for place in range(count)
    ]
    sizes = [inputs, *(biases.size for _, biases in found)]
    shapes = [each.shape for pair in found for each in pair]
    expected = [shape for above, below in pairwise(sizes) for shape in ((above, below), (below,))]
    if not found or sizes[-1] != CLASSES or shapes != expected:
        raise ValueError(f"expected layers from {inputs} features to 2 classes, found {shapes}")
    return HumanClassifier(found)


def sigmoid(values: Floats) -> Floats:
    """The logistic function, without overflow on either side."""
    falling = np.exp(-np.abs(values))
    return np.where(values >= 0, 1.0, falling) / (1.0 + falling)
