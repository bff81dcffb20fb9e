"""The service's answers as lines of text for people; what others wrote is plain text in them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from prescore import warned
from prescore.cli import gate_rows
from prescore.counts import counted
from prescore.models import (
    Dataset,
    Estimate,
    Evaluation,
    Forecast,
    Gate,
    Learned,
    NoForecast,
    Probes,
    RunTask,
    Score,
    Scored,
    Standing,
)
from prescore.plain_text import quoted

WIDEST = 200  # columns have at most so many characters; a longer text goes beyond its column
_PART = "subset"  # the warning of a part of the split
GATE_HEADING = ("gate", "metric", "score", "interval", "baseline", "difference", "verdict")


def aligned(rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    cells = [[quoted(cell) for cell in row] for row in rows]
    widths = [min(WIDEST, max(map(len, column))) for column in zip(*cells, strict=True)]
    return [
        indent
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def summary(evaluation: Evaluation) -> list[str]:
    """All that people want to know of a run, in sections."""
    return [
        *_facts(evaluation),
        *_section("tasks", [task_row(task) for task in evaluation.tasks]),
        *_section("scores", score_rows(evaluation.scores)),
        *distrusted(evaluation),
        *_section("forecast", list(expected_rows(evaluation.forecast or {}))),
        *_section("estimate", _estimate(evaluation)),
        *_section("warnings", warning_rows(evaluation)),
        *_section("gates", gate_table(evaluation.gates)),
        *gate_details(evaluation.gates),
        *failed_baselines(evaluation.gates),
    ]


def judged(evaluation: Evaluation) -> list[str]:
    """What a CI job shows: the verdict in the second line and in the last one, scores and gates
    between, and only those tasks and details that tell why it did not pass.
    """
    tasks = [task_row(task) for task in evaluation.tasks if task.status != "done"]
    told = [gate for gate in evaluation.gates if gate.verdict != "passed" or gate.passed_unheld]
    return [
        *_facts(evaluation),
        *_section("tasks", tasks),
        *_section("scores", score_rows(evaluation.scores)),
        *distrusted(evaluation),
        *_section("estimate", _estimate(evaluation)),
        *_section("warnings", warning_rows(evaluation)),
        *_section("gates", gate_table(evaluation.gates)),
        *gate_details(told),
        *failed_baselines(evaluation.gates),
        *_verdict_line(evaluation),
    ]


def _facts(evaluation: Evaluation) -> list[str]:
    facts = [
        ("verdict", verdict(evaluation.verdict or "", evaluation.gates)),
        ("checkpoint", evaluation.checkpoint or ""),
        ("labels", labels(evaluation.labels)),
        ("error", evaluation.error.detail or evaluation.error.code if evaluation.error else ""),
    ]
    return [
        *aligned([(evaluation.id, evaluation.status, on(evaluation))]),
        *aligned([fact for fact in facts if fact[1]]),
    ]


def warning_rows(evaluation: Evaluation) -> Sequence[tuple[str, str, str]]:
    """Code, image and detail of each kind of warning that no other line says."""
    return warned.rows(
        (one.code, one.detail, one.image)
        for one in evaluation.warnings
        if one.code not in ("unavailable", _PART)  # a task's line, and the first, say so
    )


def problem_lines(found: Learned | Probes) -> list[str]:
    """The error that ended it, and its warnings."""
    error = [] if found.error is None else [("error", found.error.detail or found.error.code)]
    return [*aligned(error), *aligned((one.code, one.detail) for one in found.warnings)]


def _estimate(evaluation: Evaluation) -> list[tuple[str, str, str, str]]:
    """Of what has no score yet."""
    found = evaluation.estimate or {}
    open_ = {name: one for name, one in found.items() if name not in evaluation.scores}
    return list(expected_rows(open_))


def _verdict_line(evaluation: Evaluation) -> list[str]:
    passed = sum(gate.verdict == "passed" for gate in evaluation.gates)
    found = verdict(evaluation.verdict or "undecided", evaluation.gates)
    return [quoted(f"{found}: {passed} of {counted(len(evaluation.gates), 'gate')} passed")]


def on(evaluation: Evaluation) -> str:
    """The split; of captions for a part of it, of how many images."""
    part = next((f", {one.detail}" for one in evaluation.warnings if one.code == _PART), "")
    return f"{evaluation.dataset}{part}"


def task_row(task: RunTask) -> tuple[str, str, str, str, str]:
    return task.name, task.status, _progress(task), _seconds(task), _remarks(task)


def score_rows(scores: Mapping[str, Score]) -> list[tuple[str, str, str, str]]:
    return [
        (name, number(score.value), bounds(score.interval), direction(score))
        for name, score in scores.items()
    ]


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:#.4g}".rstrip(".")


def signed(difference: float) -> str:
    return f"{difference:+#.4g}".rstrip(".")


def bounds(interval: Sequence[float | None] | None) -> str:
    if interval is None:
        return ""
    low, high = interval
    return f"[{number(low)}, {number(high)}]"


def scored_rows(found: Iterable[Scored]) -> list[tuple[str, ...]]:
    """Rows of a leaderboard or a history; `=` marks a shared rank."""
    return [_scored_row(each) for each in found]


def _scored_row(each: Scored) -> tuple[str, ...]:
    place = f"{'=' if each.tied else ''}{each.rank}" if isinstance(each, Standing) else ""
    when = moment(each.created_at)
    facts = each.evaluation, when, labels(each.labels)
    return place.rjust(4), number(each.value), bounds(each.interval), *facts


def distrusted(evaluation: Evaluation) -> list[str]:
    """A line where one sentence for all images has as good a score as people's captions have."""
    health = {name: one.constant_of_human for name, one in (evaluation.health or {}).items()}
    shares = {name: health.get(name) or 0.0 for name in evaluation.scores}
    bad = [f"{name} {share:.0%}" for name, share in shares.items() if share >= 1]
    if not bad:
        return []
    told = (
        "health: one and the same sentence for all images scores as much as people's captions or "
        f"more, so these scores say little: {', '.join(bad)} of people's; "
        f"prescore health {evaluation.dataset}"
    )
    return [quoted(told)]


def not_yet(split: str, done: str, command: str) -> str:
    """What to do about a split that has not been `done`."""
    return f"{split} has not been {done}: prescore {command} {split} --compute"


def moment(when: datetime | None) -> str:
    return "" if when is None else f"{when:%Y-%m-%d %H:%M}"


def labels(found: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in found.items())


def direction(score: Score) -> str:
    return "lower is better" if score.higher_is_better is False else ""


def expected_rows(
    expected: Mapping[str, Forecast] | Mapping[str, Estimate] | NoForecast,
) -> Iterator[tuple[str, str, str, str]]:
    """Rows of a forecast or an estimate, or the reason why there is none."""
    if isinstance(expected, NoForecast):
        yield "none because", expected.none_because, "", ""
        return
    for name, one in expected.items():
        seen = f"{one.images} of {one.of} images" if isinstance(one, Estimate) else ""
        yield name, number(one.value), bounds(one.interval), seen


def gate_table(gates: Sequence[Gate]) -> list[tuple[str, ...]]:
    """A heading, then a row for each metric of each gate; empty where there are no gates."""
    table = [
        (
            row.gate,
            row.metric,
            _known(row.score),
            bounds(None if row.low is None else (row.low, row.high)),
            _known(row.baseline),
            "" if row.difference is None else f"{row.difference:+.4g}",
            verdict(row.verdict, [gate]),
        )
        for gate in gates
        for row in gate_rows.rows([gate])
    ]
    return [GATE_HEADING, *table] if table else []


def verdict(found: str, gates: Iterable[Gate]) -> str:
    """A verdict on gates; one that passed for want of a baseline says so."""
    unheld = found == "passed" and any(gate.passed_unheld for gate in gates)
    return f"{found} (no baseline)" if unheld else found


def gate_details(gates: Iterable[Gate]) -> list[str]:
    return [
        quoted(
            f"{verdict(gate.verdict or 'open', [gate])}: {gate.gate}: {gate.detail}".replace(
                "\n", " "
            )
        )
        for gate in gates
        if gate.detail
    ]


def failed_baselines(gates: Iterable[Gate]) -> list[str]:
    """A line for each baseline that failed its own gates, whatever the verdicts are."""
    against = [
        score.evaluation
        for gate in gates
        if gate.baseline_failed
        for score in gate.scores.values()
        if score.evaluation
    ]
    return [
        quoted(f"warning: the baseline {evaluation} failed its own gates")
        for evaluation in dict.fromkeys(against)
    ]


def dataset_rows(datasets: Iterable[Dataset]) -> list[tuple[str, str, str, str]]:
    return [
        (str(dataset), _splits(dataset), _features(dataset), dataset.digest) for dataset in datasets
    ]


def _known(value: float | None) -> str:
    return "" if value is None else number(value)


def _section(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    return [title, *aligned(rows, indent="  ")] if rows else []


def _progress(task: RunTask) -> str:
    return f"{task.progress.done}/{task.progress.total}" if task.progress.total else ""


def _seconds(task: RunTask) -> str:
    return "" if task.seconds is None else f"{task.seconds:.1f} s"


def _remarks(task: RunTask) -> str:
    remarks = ["cached"] if task.cached else []
    if task.attempts > 1:
        remarks.append(f"attempt {task.attempts}")
    if task.error is not None:
        remarks.append(task.error.detail or task.error.code)
    return ", ".join(remarks)


def _splits(dataset: Dataset) -> str:
    return ", ".join(
        f"{name} {counted(split.images, 'image')} {counted(split.references, 'reference')}"
        + (f" {counted(split.pictures, 'picture')}" if split.pictures else "")
        for name, split in dataset.splits.items()
    )


def _features(dataset: Dataset) -> str:
    shown = ", pictures shown" if dataset.pictures_shown else ""
    if dataset.features is None:
        pictured = any(split.pictures for split in dataset.splits.values())
        return f"{'captions and pictures' if pictured else 'captions only'}{shown}"
    features, encoder = dataset.features, dataset.features.encoder
    places = "" if features.inputs == "features" else f"{features.inputs} {features.places} x "
    name = encoder.name if encoder else "an encoder"
    return f"features {places}{features.size} of {name}{shown}"
