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


def tell_people(dataset: str, found: dict[str, float], capsys, page: Path) -> None:
    """People above the best of twelve captioners."""
    people, best = found.pop("people"), max(found, key=found.__getitem__)
    row = (dataset, f"{people:.4f}", f"{found[best]:.4f} ({best})", f"{min(found.values()):.4f}")
    tell([row], capsys, page)
    assert people > found[best]
