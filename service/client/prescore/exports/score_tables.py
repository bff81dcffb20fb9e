"""Scores of runs as CSV in the long form: a row for each run and metric."""

import io
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

from prescore import plain_text
from prescore.exports.finished_runs import FinishedRun
from prescore.exports.new_files import open_new_file

COLUMNS = (
    *("evaluation", "dataset", "checkpoint", "metric", "family", "value", "low", "high"),
    *("higher_is_better", "signature", "created_at", "finished_at", "labels"),
)


def write_score_file(runs: Iterable[FinishedRun], out: Path | None) -> None:
    """Write the table to a file, or to stdout once it is complete."""
    if out is not None:
        with open_new_file(out) as stream:
            write_score_table(stream, runs)
        return
    table = io.StringIO(newline="")
    write_score_table(table, runs)
    sys.stdout.write(table.getvalue())


def write_score_table(stream: IO[str], runs: Iterable[FinishedRun]) -> None:
    """Write a table in which no cell is a formula of a spreadsheet."""
    plain_text.write_table(stream, [COLUMNS])
    for run in runs:
        plain_text.write_table(stream, _build_rows(run))


def _build_rows(run: FinishedRun) -> Iterator[tuple[object, ...]]:
    one = run.evaluation
    labels = json.dumps(one.labels, ensure_ascii=False)
    for name, score in run.scores.items():
        low, high = score.interval or (None, None)
        yield (
            *(one.id, str(one.dataset), one.checkpoint, name, score.family, score.value),
            *(low, high, score.higher_is_better, score.signature),
            *(one.created_at, one.finished_at, labels),
        )
