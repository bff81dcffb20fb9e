"""Agreement with people beside robustness, as Markdown that others cannot write into."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from prescore.plain_text import quoted
from workers.bench.judgements import ALL, AVERAGE, WORST
from workers.bench.judging import systems
from workers.bench.judging.correlations import NAMES
from workers.bench.judging.preferences import KINDS
from workers.bench.judging.robustness import LONGER
from workers.bench.judging.verdict import Verdict
from workers.bench.judging.verdict_formats import (
    TIES,
    Cells,
    format_figure,
    list_comparisons,
    make_difference_cells,
    make_figure_cells,
)

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def format_report(name: str, judged: Verdict, robust: Verdict | None) -> str:
    """`robust`: the verdict on the tasks that were made; None if there are none."""
    lines = [f"# Metrics judged by {escape_markdown(name)}", ""]
    lines += [
        "95 % intervals in brackets; lines of one image hang together; p < .001 unless given.",
        "",
    ]
    if judged["rated"]:
        lines += [*_agreement(judged), *_differences("rated", judged)]
    if judged["pairs"]:
        lines += ["## Agreement: judged pairs", "", *_accuracies(judged["pairs"])]
        lines += _differences("pairs", judged)
    if judged["systems"]:
        lines += _systems(judged["systems"])
    lines += ["## Robustness", ""]
    if robust is None or not robust["pairs"]:
        lines += ["No tasks could be made of these captions.", ""]
    else:
        lines += _robustness(robust["pairs"])
    lines += ["## How the scores were computed", ""]
    lines += [
        f"- {escape_markdown(each)}: {escape_markdown(said)}"
        for each, said in judged["signatures"].items()
    ]
    lines += [
        f"- {escape_markdown(each)} is missing: {escape_markdown(why['detail'])}"
        for each, why in judged["missing"].items()
    ]
    lines += [
        f"- {escape_markdown(metric)}: {escape_markdown(row['reason'])}"
        for metric, row in judged["rated"].items()
        if row["reason"]
    ]
    return "\n".join(lines) + "\n"


def escape_markdown(said: object) -> str:
    """One line in which every punctuation mark is escaped."""
    return _PUNCTUATION.sub(r"\\\1", " ".join(map(quoted, str(said).split("\n"))))


def _agreement(judged: Verdict) -> Iterator[str]:
    rows = judged["rated"]
    first = next(iter(rows.values()))
    yield "## Agreement: rated captions"
    yield ""
    yield (
        f"{first['n']:,} lines, {first['observations']:,} ratings ({judged['raters']}), "
        f"{first['clusters']:,} images."
    )
    yield ""
    yield from _table(make_figure_cells(rows, NAMES))


def _differences(kind: str, judged: Verdict) -> Iterator[str]:
    if len(judged[kind]) > 1:
        yield "Differences from the metric marked \\*, on the same lines:"
        yield ""
        comparisons = list_comparisons(judged, kind)
        yield from _table(make_difference_cells(comparisons, judged[kind], "\\*"))


def _accuracies(metrics: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for kind, field in KINDS.items():
        first = next(iter(metrics.values()))
        yield f"Accuracy where {TIES[kind]}:"
        yield ""
        heads = [each if each == WORST else f"{each} ({first[each]['n']:,})" for each in first]
        rows = [
            [metric, *(format_figure(row[kind], row[field]) for row in rows.values())]
            for metric, rows in metrics.items()
        ]
        yield from _table([["", *heads], *rows])


def _systems(found: Mapping[str, Any]) -> Iterator[str]:
    yield "## Agreement: systems"
    yield ""
    yield (
        f"Mean scores of {found['n']:,} systems with their mean ratings; intervals by resampling "
        f"{found['clusters']:,} images."
    )
    yield ""
    yield from _table(make_figure_cells(found["metrics"], systems.NAMES))


def _robustness(metrics: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A row for each kind of task, since there are more kinds than metrics."""
    yield (
        "How often a metric gives a person's caption a higher score than the one that a rule made "
        "worse, ties as half; guessing earns .500. By the image's other captions."
    )
    yield ""
    first = next(iter(metrics.values()))
    kinds = [name for name in first if name not in (ALL, AVERAGE, WORST, LONGER)]
    kinds += [LONGER] if LONGER in first else []
    rows = [
        [
            kind,
            f"{first[kind]['n']:,}",
            *(
                format_figure(own[kind]["half"], own[kind]["half_interval"])
                for own in metrics.values()
            ),
        ]
        for kind in kinds
    ]
    yield from _table([["task", "pairs", *metrics], *rows])
    if LONGER in first:
        yield (
            "The last row has no wrong caption: above .500 a metric prefers long captions, below "
            "it short ones."
        )
        yield ""


def _table(cells: Cells) -> Iterator[str]:
    """The first column and the heads are words; other cells are our own figures."""
    (corner, *titles), *rows = cells
    head = [corner or "metric", *titles]
    yield f"| {' | '.join(map(escape_markdown, head))} |"
    yield f"|{'---|' * len(head)}"
    for first, *figures in rows:
        yield f"| {' | '.join([escape_markdown(first), *figures])} |"
    yield ""
