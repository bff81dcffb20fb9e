"""The four captioners of the pre-gen paper (Tanti, Gatt and Muscat 2018), one caption at a time.

Provenance: written from the definitions, independent of workers/. They stand in
deploy/guide/file-formats.md (architectures, classic GRU, the tensors' names and shapes) and in
deploy/guide/scoring.md (decoding). Float64 numpy, no batches, no kept state: a decoder runs its
whole prefix again at every step. Slow on purpose.

What the definitions leave open is settled like this:

- The image layer is linear: no activation after it. A zero feature vector stays zero, so that its
  projection is the bias.
- LSTM: gates sigmoid, candidate and output tanh, c' = f*c + i*g, h' = o*tanh(c'); nothing is added
  to the forget gate beyond its stored bias. init's projected image and the learned `initial` are
  the first state h; the second state c starts at zero. pre's both start at zero.
- Ties. greedy: the lowest id. beam: the hypothesis (or its parent) standing higher in the beam
  first, then the lower id.
- A caption cut at max_words has no END, and END is not in its sum of log-probabilities.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from helpers import plain_search

ARCHITECTURES = ("init", "pre", "par", "merge")
END = 0  # also START: the edge token
UNK = 1

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Tensors = Mapping[str, NDArray[Any]]


class Hypothesis(NamedTuple):
    """A place in the beam; words without END."""

    words: list[int]
    logp: float
    complete: bool


def shapes(
    architecture: str,
    cell: str,
    size: int,
    feature_size: int,
    vocabulary_size: int,
    embedding_size: int | None = None,
    image_size: int | None = None,
) -> dict[str, tuple[int, ...]]:
    """The name and shape of every tensor of a checkpoint."""
    word = embedding_size or size
    image = image_size or size
    if architecture in ("init", "pre"):  # it is the state, or a word
        image = size if architecture == "init" else word
    rnn_input = image + word if architecture == "par" else word
    output_input = image + size if architecture == "merge" else size
    result: dict[str, tuple[int, ...]] = {
        "image.weight": (feature_size, image),
        "image.bias": (image,),
        "embedding.weight": (vocabulary_size, word),
        "output.weight": (output_input, vocabulary_size),
        "output.bias": (vocabulary_size,),
    }
    if architecture in ("par", "merge"):
        result["initial"] = (size,)
    if cell in ("gru", "torch_gru"):
        result["gates.weight"] = (rnn_input + size, 2 * size)
        result["gates.bias"] = (2 * size,)
        result["candidate.weight"] = (rnn_input + size, size)
        result["candidate.bias"] = (size,)
        if cell == "torch_gru":
            result["candidate.state_bias"] = (size,)
    else:
        result["gates.weight"] = (rnn_input + size, 4 * size)
        result["gates.bias"] = (4 * size,)
    return result


def random_tensors(
    architecture: str,
    cell: str,
    size: int,
    feature_size: int,
    vocabulary_size: int,
    rng: np.random.Generator,
    scale: float = 0.5,
    embedding_size: int | None = None,
    image_size: int | None = None,
) -> dict[str, NDArray[np.float32]]:
    """Normal noise of standard deviation `scale` in every tensor, biases included."""
    named = shapes(
        architecture, cell, size, feature_size, vocabulary_size, embedding_size, image_size
    )
    return {
        name: (scale * rng.standard_normal(shape)).astype(np.float32)
        for name, shape in named.items()
    }


def forward(
    architecture: str, cell: str, tensors: Tensors, features: NDArray[Any], words: Sequence[int]
) -> Floats:
    """Logits (len(words)+1, V): row t is what follows START and the first t words."""
    t = {name: np.asarray(tensor, dtype=np.float64) for name, tensor in tensors.items()}
    image = _normalised(features) @ t["image.weight"] + t["image.bias"]
    zeros: Floats = np.zeros(len(t["gates.bias"]) // (4 if cell == "lstm" else 2))

    if architecture == "init":
        state = (image, zeros)
    elif architecture == "pre":
        state = _step(cell, t, image, (zeros, zeros))  # the output at the image is dropped
    else:
        state = (t["initial"], zeros)

    rows: list[Floats] = []
    for word in [END, *words]:
        x: Floats = t["embedding.weight"][word]
        if architecture == "par":
            x = np.concatenate([image, x])
        state = _step(cell, t, x, state)
        top: Floats = state[0]
        if architecture == "merge":
            top = np.concatenate([image, top])
        rows.append(top @ t["output.weight"] + t["output.bias"])
    return np.stack(rows)


def columns(
    architecture: str,
    cell: str,
    tensors: Tensors,
    features: NDArray[Any],
    references: Sequence[Sequence[Sequence[int]]],
) -> tuple[Floats, Ints, Ints, Ints]:
    """logp, rank, caption_offsets, image_offsets of every reference word and END.

    `features` is (N, D), `references` the captions of each image as ids (UNK already put in).
    """
    logp: list[float] = []
    rank: list[int] = []
    caption_offsets = [0]
    image_offsets = [0]
    for image_features, captions in zip(features, references, strict=True):
        for words in captions:
            logits = forward(architecture, cell, tensors, image_features, words)
            for row, target in zip(logits, [*words, END], strict=True):
                logp.append(float(_log_softmax(row)[target]))
                rank.append(int(np.sum(row > row[target])))
            caption_offsets.append(len(logp))
        image_offsets.append(len(caption_offsets) - 1)
    return (
        np.array(logp, dtype=np.float64),
        np.array(rank, dtype=np.int64),
        np.array(caption_offsets, dtype=np.int64),
        np.array(image_offsets, dtype=np.int64),
    )


def greedy(
    architecture: str,
    cell: str,
    tensors: Tensors,
    features: NDArray[Any],
    min_words: int = 0,
    max_words: int = 50,
    unk: bool = True,
) -> list[int]:
    """The most probable allowed word at each step, without END."""
    return plain_search.greedy(
        lambda words: forward(architecture, cell, tensors, features, words)[-1],
        END,
        least=min_words,
        most=max_words,
        never=() if unk else (UNK,),
    )


def beam(
    architecture: str,
    cell: str,
    tensors: Tensors,
    features: NDArray[Any],
    width: int = 3,
    min_words: int = 4,
    max_words: int = 50,
    unk: bool = False,
) -> tuple[list[int], float]:
    """The words (without END) and the sum of log-probabilities (END's included) of the winner."""
    return search(
        lambda words: forward(architecture, cell, tensors, features, words)[-1],
        width,
        min_words,
        max_words,
        unk,
    )


def search(
    following: Callable[[list[int]], Floats],
    width: int,
    min_words: int,
    max_words: int,
    unk: bool = False,
) -> tuple[list[int], float]:
    """The same of any model; `following`: the logits of what follows these words."""
    hypotheses = [Hypothesis([], 0.0, complete=False)]
    while True:
        best = hypotheses[0]
        if best.complete or len(best.words) >= max_words:
            return best.words, best.logp
        candidates: list[Hypothesis] = []
        for hypothesis in hypotheses:
            if hypothesis.complete:
                candidates.append(hypothesis)
                continue
            words = hypothesis.words
            logp = _log_softmax(following(words))
            for word in _allowed(len(logp), len(words), min_words, unk):
                total = hypothesis.logp + float(logp[word])
                if word == END:
                    candidates.append(Hypothesis(words, total, complete=True))
                else:
                    candidates.append(Hypothesis([*words, word], total, complete=False))
        candidates.sort(key=lambda candidate: -candidate.logp)  # stable: ties keep their order
        hypotheses = candidates[:width]


def _allowed(vocabulary_size: int, length: int, min_words: int, unk: bool) -> list[int]:
    """The ids that may follow `length` words, ascending."""
    result: list[int] = []
    for word in range(vocabulary_size):
        if word == END and length < min_words:
            continue
        if word == UNK and not unk:
            continue
        result.append(word)
    return result


def _normalised(features: NDArray[Any]) -> Floats:
    x = np.asarray(features, dtype=np.float64)
    length = float(np.sqrt(np.sum(x * x)))
    return x / length if length > 0.0 else x


def _step(
    cell: str, t: Mapping[str, Floats], x: Floats, state: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """One step of the RNN: the state is (h, c), of which the GRU leaves c alone."""
    h, c = state
    size = len(h)
    if cell == "torch_gru":  # the equations of torch.nn.GRU's page, gate by gate
        w, state_w = np.split(t["gates.weight"], [len(x)])
        b = t["gates.bias"]
        r = _sigmoid(x @ w[:, :size] + h @ state_w[:, :size] + b[:size])
        z = _sigmoid(x @ w[:, size:] + h @ state_w[:, size:] + b[size:])
        w, state_w = np.split(t["candidate.weight"], [len(x)])
        n = np.tanh(x @ w + t["candidate.bias"] + r * (h @ state_w + t["candidate.state_bias"]))
        return (1.0 - z) * n + z * h, c
    gates = np.concatenate([x, h]) @ t["gates.weight"] + t["gates.bias"]
    if cell == "gru":
        reset = _sigmoid(gates[:size])
        update = _sigmoid(gates[size:])
        mixed = np.concatenate([x, reset * h])  # reset before the product: not torch.nn.GRU
        candidate = np.tanh(mixed @ t["candidate.weight"] + t["candidate.bias"])
        return update * h + (1.0 - update) * candidate, c
    take = _sigmoid(gates[:size])
    forget = _sigmoid(gates[size : 2 * size])
    candidate = np.tanh(gates[2 * size : 3 * size])
    give = _sigmoid(gates[3 * size :])
    c = forget * c + take * candidate
    return give * np.tanh(c), c


def _sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)), in a form that does not overflow."""
    result: Floats = 0.5 * (1.0 + np.tanh(0.5 * x))
    return result


def _log_softmax(logits: Floats) -> Floats:
    shifted = logits - np.max(logits)
    result: Floats = shifted - np.log(np.sum(np.exp(shifted)))
    return result
