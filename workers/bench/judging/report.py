"""Agreement with people beside robustness, as Markdown that others cannot write into."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from prescore.plain_text import quoted
from workers.bench.judgements import ALL, AVERAGE, WORST
from workers.bench.judging import systems
from workers.bench.judging.correlations import NAMES, P_VALUES
from workers.bench.judging.preferences import KINDS
from workers.bench.judging.robustness import LONGER
from workers.bench.judging.verdict import Verdict
from workers.bench.judging.verdict_formats import TITLES

_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")
_SMALL_P = 0.001
_TIES = {"accuracy": "a tie is wrong", "half": "a tie is half"}


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
    lines += [f"- {said}" for said in _reasons(judged)]
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
    yield from _table(
        ["metric", *(TITLES[name] for name in NAMES)],
        (
            [
                metric,
                *(_sure(row[name], row["intervals"][name], row[P_VALUES[name]]) for name in NAMES),
            ]
            for metric, row in rows.items()
        ),
    )


def _differences(kind: str, judged: Verdict) -> Iterator[str]:
    compared: dict[str, Mapping[str, Any]] = {}
    if kind == "rated":
        compared = {TITLES[name]: each for name, each in judged["comparisons"]["rated"].items()}
    else:
        for name in (ALL, AVERAGE):
            for tie, each in judged["comparisons"]["pairs"].get(name, {}).items():
                compared[f"{name}, {_TIES[tie]}"] = each
    if len(judged[kind]) > 1:
        yield "Differences from the metric marked \\*, on the same lines:"
        yield ""
        yield from _table(
            ["metric", *compared],
            (
                [metric, *(_difference(each, metric) for each in compared.values())]
                for metric in judged[kind]
            ),
        )


def _difference(compared: Mapping[str, Any], metric: str) -> str:
    if metric == compared["against"]:
        return "\\*"
    row = compared["metrics"].get(metric)
    return "none" if row is None else _sure(row["difference"], row["interval"], row["p"], "+.3f")


def _accuracies(metrics: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for kind, field in KINDS.items():
        first = next(iter(metrics.values()))
        yield f"Accuracy where {_TIES[kind]}:"
        yield ""
        heads = [each if each == WORST else f"{each} ({first[each]['n']:,})" for each in first]
        yield from _table(
            ["metric", *heads],
            (
                [metric, *(_sure(row[kind], row[field]) for row in rows.values())]
                for metric, rows in metrics.items()
            ),
        )


def _systems(found: Mapping[str, Any]) -> Iterator[str]:
    yield "## Agreement: systems"
    yield ""
    yield (
        f"Mean scores of {found['n']:,} systems with their mean ratings; intervals by resampling "
        f"{found['clusters']:,} images."
    )
    yield ""
    yield from _table(
        ["metric", *(TITLES[name] for name in systems.NAMES)],
        (
            [metric, *(_sure(row[name], row["intervals"][name]) for name in systems.NAMES)]
            for metric, row in found["metrics"].items()
        ),
    )


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
    yield from _table(
        ["task", "pairs", *metrics],
        (
            [
                kind,
                f"{first[kind]['n']:,}",
                *(
                    _sure(rows[kind]["half"], rows[kind]["half_interval"])
                    for rows in metrics.values()
                ),
            ]
            for kind in kinds
        ),
    )
    if LONGER in first:
        yield (
            "The last row has no wrong caption: above .500 a metric prefers long captions, below "
            "it short ones."
        )
        yield ""


def _sure(
    value: float | None,
    interval: Sequence[float] | None,
    p: float | None = None,
    form: str = ".3f",
) -> str:
    if value is None:
        return "none"
    ends = f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else ""
    return f"{value:{form}}{ends}" + (f" p={p:.2g}" if p is not None and p >= _SMALL_P else "")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The first column and the heads are words; other cells are our own figures."""
    yield f"| {' | '.join(map(escape_markdown, head))} |"
    yield f"|{'---|' * len(head)}"
    for first, *cells in rows:
        yield f"| {' | '.join([escape_markdown(first), *cells])} |"
    yield ""


def _reasons(judged: Verdict) -> Iterator[str]:
    for metric, row in judged["rated"].items():
        if row["reason"]:
            yield f"{escape_markdown(metric)}: {escape_markdown(row['reason'])}"
