"""The arguments of a probe, and how its rows are made."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from workers.analysis.probing import table
from workers.analysis.probing.material import Material
from workers.analysis.probing.scoring import Scorer
from workers.analysis.probing.table import ProbeScores, Row
from workers.metrics.vectors import stop_words
from workers.progress import Progress

Trial = tuple[Sequence[str], int | None]  # captions, and the column of references to leave out


@dataclass(frozen=True)
class Options:
    """`columns`: how many references take their turn as the candidate; None: as many as every image
    has. `frequent`: the words, or how many of the most frequent ones. `share`: the share of tokens
    to replace at random; None: the share that the word `like` has. `state`: a file that keeps the
    progress of the search for a single sentence.
    """

    columns: int | None = None
    frequent: Sequence[str] | int = ("people", "standing", "sitting", "man", "a")
    thresholds: Sequence[int] = (30, 20, 10, 5)
    swaps: Sequence[tuple[str, str]] = (("woman", "man"),)
    share: float | None = None
    like: str = "a"
    stop_list: frozenset[str] = stop_words.ENGLISH
    seeds: Sequence[int] = (0, 1, 2, 3, 4)
    objective: str = "bleu_4"
    state: Path | None = None


@dataclass(frozen=True)
class Asked:
    material: Material
    score: Scorer
    options: Options
    progress: Progress

    def scores(self, trials: Sequence[Trial]) -> list[ProbeScores]:
        """Score captions against the references without a column, or against all of them (None)."""
        found: list[ProbeScores] = []
        for captions, column in trials:
            material = self.material
            references = material.complete if column is None else material.rest(column)
            found.append(self.score(captions, references))
            self.progress(len(found), len(trials))
        return found


def row(
    probe: str,
    name: str,
    scored: Sequence[ProbeScores],
    first: Row | None = None,
    *,
    share: float | None = None,
    text: str = "",
    note: str = "",
) -> Row:
    """Make a row: the mean of the scores, their deviation if there are several, and the drop from
    the table's first row.
    """
    scores = table.mean(scored)
    return Row(
        probe,
        name,
        share=share,
        scores=scores,
        drop=table.drop(first.scores, scores) if first else {},
        sd=table.deviation(scored) if len(scored) > 1 else {},
        signatures=scored[0].signatures,
        text=text,
        note=note,
    )


def no_rest(material: Material) -> str | None:
    """Why one reference cannot be compared with the others; None if it can."""
    if not material.references:
        return "no images"
    return (
        None
        if material.several
        else "no image has two references: comparing one with the rest needs two"
    )


def left_out(material: Material) -> str:
    total = len(material.references)
    missing = total - len(material.several)
    return f"left out: {missing} of {total} images, with one reference" if missing else ""
