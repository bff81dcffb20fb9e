"""Measurements of a model's logits, in float64: log-probability and rank of each target, the most
probable tokens, the entropy.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prescore.errors import InvalidArgument

_CHUNK_BYTES = 1 << 23  # of one float64 copy of logits; five are in memory at the same time

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LogitMeasures:
    """Measurements of T targets: `logp` (T), `rank` (T), `ids` (T), `top_ids` and `top_logp` (T,
    k), and `entropy` (T) in nats.
    """

    logp: NDArray[np.float32]
    rank: NDArray[np.int64]
    ids: NDArray[np.int64]
    top_ids: NDArray[np.int64]
    top_logp: NDArray[np.float32]
    entropy: NDArray[np.float32]


def measure_logits(logits: Any, targets: Any, top: int) -> LogitMeasures:
    """`logits` (T, V) and `targets` (T): arrays of numpy, or of whatever numpy can read; tensors of
    torch on any device.
    """
    ids = _check_targets(targets, logits)
    tokens, words = logits.shape
    rows = max(1, _CHUNK_BYTES // (8 * words))
    parts = [
        _measure_rows(
            _convert_floats(logits[start : start + rows]),
            ids[start : start + rows],
            min(top, words),
        )
        for start in range(0, tokens, rows)
    ]
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return LogitMeasures(*map(np.concatenate, columns))


def _check_targets(targets: Any, logits: Any) -> NDArray[np.int64]:
    ids = np.asarray(move_to_cpu(targets))
    shape = tuple(logits.shape)
    if len(shape) != 2 or 0 in shape or ids.shape != shape[:1]:
        raise InvalidArgument(
            "expected logits (T, V) and targets (T) of one reference, END included; "
            f"found logits {shape} and targets {ids.shape}"
        )
    if ids.dtype.kind not in "iu":
        raise InvalidArgument(f"expected targets that are places in logits, found {ids.dtype}")
    if ids.min() < 0 or ids.max() >= shape[1]:
        raise InvalidArgument(
            f"expected targets from 0 to {shape[1] - 1}, found {ids.min()} to {ids.max()}; "
            "leave out padding"
        )
    return ids.astype(np.int64)


def _measure_rows(logits: Floats, ids: NDArray[np.int64], top: int) -> LogitMeasures:
    best = logits.max(axis=1, keepdims=True)
    if not np.isfinite(best).all() or np.isnan(logits).any():
        raise InvalidArgument("expected finite logits (-inf is accepted), found nan or inf")
    if _are_probabilities(logits):
        raise InvalidArgument(
            "expected logits or log-probabilities, found rows of probabilities, which sum to 1: "
            "give what the model says before its softmax"
        )
    own = np.take_along_axis(logits, ids[:, None], axis=1)
    exponentials = np.exp(logits - best)
    total = exponentials.sum(axis=1, keepdims=True)
    logs = logits - best - np.log(total)
    top_ids = _find_most_probable(logits, top)
    return LogitMeasures(
        logp=_clip_logarithms(np.take_along_axis(logs, ids[:, None], axis=1)[:, 0]),
        rank=(logits > own).sum(axis=1),
        ids=ids,
        top_ids=top_ids,
        top_logp=_clip_logarithms(np.take_along_axis(logs, top_ids, axis=1)),
        entropy=_compute_entropy(logs, exponentials / total),
    )


def _are_probabilities(logits: Floats) -> bool:
    return (
        logits.shape[1] > 2
        and logits.min() >= 0
        and bool(np.allclose(logits.sum(axis=1), 1, 0, 1e-3))
    )


def _clip_logarithms(values: Floats) -> NDArray[np.float32]:
    return np.minimum(values, 0).astype(np.float32)


def _find_most_probable(logits: Floats, top: int) -> NDArray[np.int64]:
    """The places of the largest logits of each row, the largest first; of equal ones the lowest is
    the first.
    """
    first: NDArray[np.int64] = logits.argmax(axis=1)[:, None]
    if top == 1:
        return first
    lowered = -logits
    np.put_along_axis(lowered, first, -np.inf, axis=1)
    places = np.argpartition(lowered, top - 1, axis=1)[:, :top]
    order = np.argsort(np.take_along_axis(lowered, places, axis=1), axis=1)
    ordered: NDArray[np.int64] = np.take_along_axis(places, order, axis=1)
    return ordered


def _compute_entropy(logs: Floats, probabilities: Floats) -> NDArray[np.float32]:
    products = np.multiply(probabilities, logs, out=np.zeros_like(logs), where=probabilities > 0)
    entropy: Floats = np.maximum(-products.sum(axis=1), 0)
    return entropy.astype(np.float32)


def _convert_floats(values: Any) -> Floats:
    array = move_to_cpu(values)
    if hasattr(array, "double"):  # of torch: numpy knows no bfloat16
        array = array.double()
    return np.asarray(array, np.float64)


def move_to_cpu(values: Any) -> Any:
    return values.detach().cpu() if hasattr(values, "detach") else values
