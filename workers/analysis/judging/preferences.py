"""How often a metric prefers the same one of two captions as people do."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workers.files.judgements import ALL, AVERAGE, WORST, Pair
from workers.metrics.family import Floats

Row = Mapping[str, Any]  # n, accuracy, ties (a share)


def accuracies(pairs: Sequence[Pair], scores: Floats) -> dict[str, Row]:
    """Accuracies by category, then of `all` pairs together, the unweighted `average` of the
    categories and the `worst` of them. `scores` (pairs, 2) are those of a and b. The metric is
    right if it gives the preferred caption a strictly higher score: a tie is wrong.
    """
    right = np.array([pair.preferred == "a" for pair in pairs]) == (scores[:, 0] > scores[:, 1])
    ties = scores[:, 0] == scores[:, 1]
    names = np.array([pair.category or "" for pair in pairs], object)
    rows = {
        name: _row(right & ~ties, ties, names == name)
        for name in dict.fromkeys(pair.category for pair in pairs)
        if name is not None
    }
    everything = _row(right & ~ties, ties, np.ones(len(pairs), bool))
    return rows | {ALL: everything, AVERAGE: _average(rows), WORST: _worst(rows)}


def _row(right: NDArray[np.bool_], ties: NDArray[np.bool_], chosen: NDArray[np.bool_]) -> Row:
    return {
        "n": int(chosen.sum()),
        "accuracy": float(right[chosen].mean()),
        "ties": float(ties[chosen].mean()),
    }


def _average(rows: Mapping[str, Row]) -> Row:
    means = {
        name: float(np.mean([row[name] for row in rows.values()])) if rows else None
        for name in ("accuracy", "ties")
    }
    return {"n": sum(row["n"] for row in rows.values()), **means}


def _worst(rows: Mapping[str, Row]) -> Row:
    if not rows:
        return {"n": 0, "accuracy": None, "ties": None, "category": None}
    name, row = min(rows.items(), key=lambda item: item[1]["accuracy"])
    return {**row, "category": name}
