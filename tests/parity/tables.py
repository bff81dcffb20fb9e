"""The tables of README.md in this folder: what the slow tests measure."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

README = Path(__file__).parent / "README.md"


def tell(cells: Sequence[Sequence[str]], capsys, page: Path = README) -> None:
    """Prints rows; fails where the page says otherwise."""
    rows = [f"| {' | '.join(row)} |" for row in cells]
    with capsys.disabled():
        print("", *rows, sep="\n")
    documented = page.read_text("utf-8").splitlines()
    assert [row for row in rows if row not in documented] == [], f"not what {page.name} says"


def tell_agreement(label: str, found: Mapping[str, Any], own: str, capsys, page: Path) -> None:
    """Kendall's tau c of each metric, and how far the own one is ahead of it."""
    rows = []
    for metric, row in found.items():
        ahead = "" if metric == own else f"{row.ahead[0]:+.3f} … {row.ahead[1]:+.3f}"
        interval = f"{row.interval[0]:.3f} … {row.interval[1]:.3f}"
        rows.append((label, metric, f"{row.tau:.4f}", interval, ahead))
    tell(rows, capsys, page)


def rows_of_tasks(label: str, shares: Mapping[str, Sequence[float]]) -> list[tuple[str, ...]]:
    """The share of each task that a metric solves, their mean, and the least."""
    return [
        (label, metric, *(f"{100 * share:.1f}" for share in (*found, np.mean(found), min(found))))
        for metric, found in shares.items()
    ]


def tell_people(dataset: str, found: Mapping[str, Any], metric: str, capsys, page: Path) -> None:
    """People above the best of twelve captioners."""
    corpus = {name: scores.corpus[metric] for name, scores in found.items()}
    people, best = corpus.pop("people"), max(corpus, key=corpus.__getitem__)
    row = (dataset, f"{people:.4f}", f"{corpus[best]:.4f} ({best})", f"{min(corpus.values()):.4f}")
    tell([row], capsys, page)
    assert people > corpus[best]


def tell_left_out(found: Mapping[str, Sequence[Any]], capsys, page: Path) -> None:
    """Kinds of contrasts that were left out of learning, all of them ahead of CIDEr-D."""
    rows = []
    for kind, sets in found.items():
        cells = [
            (f"{100 * each.solved:.1f}", f"{100 * each.ahead:+.1f} ± {100 * each.error:.1f}")
            for each in sets
        ]
        rows.append([kind, *(cell for pair in cells for cell in pair)])
    tell(rows, capsys, page)
    assert all(each.ahead > 0 for sets in found.values() for each in sets)
