"""Evaluations as lines of text: their tasks, scores, warnings, expectations and gates."""

from collections.abc import Iterator, Mapping, Sequence

from prescore.cli import caption_drops, gate_tables
from prescore.cli.text import (
    align_facts,
    align_rows,
    format_interval,
    format_labels,
    format_number,
    format_section,
    group_warnings,
)
from prescore.models import (
    CaptionDrops,
    Estimate,
    Evaluation,
    Forecast,
    Gate,
    NoForecast,
    RunTask,
    Score,
)
from prescore.plain_text import format_count, quoted

_PART = "subset"  # the warning of a part of the split


def format_summary(evaluation: Evaluation) -> list[str]:
    """Format all that people want to know of a run, in sections."""
    return [
        *_format_facts(evaluation),
        *format_section("tasks", [build_task_row(task) for task in evaluation.tasks]),
        *format_section("scores", build_score_rows(evaluation.scores)),
        *list_falls(evaluation),
        *_warn_of_health(evaluation),
        *format_section("forecast", list(list_expectations(evaluation.forecast or {}))),
        *_format_estimate(evaluation),
        *format_section("warnings", list_warnings(evaluation)),
        *_format_gates(evaluation.gates),
        *gate_tables.list_details(evaluation.gates),
        *gate_tables.list_failed_baselines(evaluation.gates),
    ]


def format_verdict_summary(evaluation: Evaluation, drops: CaptionDrops | None = None) -> list[str]:
    """Format a run for a CI job: the verdict in the second line and in the last one, scores, gates
    and `drops` between, and only those tasks and details that tell why it did not pass.
    """
    gates = evaluation.gates
    tasks = [build_task_row(task) for task in evaluation.tasks if task.status != "done"]
    unproven = [gate for gate in gates if gate.verdict != "passed" or gate.passed_unheld]
    passed = sum(gate.verdict == "passed" for gate in gates)
    verdict = gate_tables.format_verdict(evaluation.verdict or "undecided", gates)
    return [
        *_format_facts(evaluation),
        *format_section("tasks", tasks),
        *format_section("scores", build_score_rows(evaluation.scores)),
        *list_falls(evaluation),
        *_warn_of_health(evaluation),
        *_format_estimate(evaluation),
        *format_section("warnings", list_warnings(evaluation)),
        *_format_gates(gates),
        *gate_tables.list_details(unproven),
        *gate_tables.list_failed_baselines(gates),
        *caption_drops.format_lines(drops, evaluation.url),
        quoted(f"{verdict}: {passed} of {format_count(len(gates), 'gate')} passed"),
    ]


def list_falls(evaluation: Evaluation) -> list[str]:
    """Give a line for each fall of a checkpoint."""
    return [quoted(f"fall: {fall.sentence()}") for fall in evaluation.falls]


def _format_gates(gates: Sequence[Gate]) -> list[str]:
    return format_section("gates", gate_tables.fit_table(gate_tables.build_table(gates)))


def _format_facts(evaluation: Evaluation) -> list[str]:
    error = evaluation.error
    facts = [
        ("verdict", gate_tables.format_verdict(evaluation.verdict or "", evaluation.gates)),
        ("checkpoint", evaluation.checkpoint or ""),
        ("labels", format_labels(evaluation.labels)),
        ("error", error.detail or error.code if error else ""),
    ]
    return [
        *align_rows([(evaluation.id, evaluation.status, describe_split(evaluation))]),
        *align_facts(facts),
    ]


def describe_split(evaluation: Evaluation) -> str:
    """Name the split; of captions for a part of it, of how many images."""
    part = next((f", {one.detail}" for one in evaluation.warnings if one.code == _PART), "")
    return f"{evaluation.dataset}{part}"


def list_warnings(evaluation: Evaluation) -> Sequence[tuple[str, str, str]]:
    """Give code, image and detail of each kind of warning that no other line says."""
    return group_warnings(
        (one.code, one.detail, one.image)
        for one in evaluation.warnings
        if one.code not in ("unavailable", _PART)  # a task's line, and the first, say so
    )


def build_task_row(task: RunTask) -> tuple[str, str, str, str, str]:
    """Give name, status, progress, seconds and remarks of a task."""
    progress = f"{task.progress.done}/{task.progress.total}" if task.progress.total else ""
    seconds = "" if task.seconds is None else f"{task.seconds:.1f} s"
    remarks = ["cached"] if task.cached else []
    if task.attempts > 1:
        remarks.append(f"attempt {task.attempts}")
    if task.error is not None:
        remarks.append(task.error.detail or task.error.code)
    return task.name, task.status, progress, seconds, ", ".join(remarks)


def build_score_rows(scores: Mapping[str, Score]) -> list[tuple[str, str, str, str]]:
    return [
        (
            name,
            format_number(score.value),
            format_interval(score.interval),
            "lower is better" if score.higher_is_better is False else "",
        )
        for name, score in scores.items()
    ]


def _warn_of_health(evaluation: Evaluation) -> list[str]:
    """Give a line where one sentence for all images scores as well as people's captions do."""
    health = {name: one.constant_of_human for name, one in (evaluation.health or {}).items()}
    shares = {name: health.get(name) or 0.0 for name in evaluation.scores}
    bad = [f"{name} {share:.0%}" for name, share in shares.items() if share >= 1]
    if not bad:
        return []
    warning = (
        "health: one and the same sentence for all images scores as much as people's captions or "
        f"more, so these scores say little: {', '.join(bad)} of people's; "
        f"prescore health {evaluation.dataset}"
    )
    return [quoted(warning)]


def _format_estimate(evaluation: Evaluation) -> list[str]:
    """Format the estimates of what has no score yet."""
    estimates = evaluation.estimate or {}
    pending = {name: one for name, one in estimates.items() if name not in evaluation.scores}
    return format_section("estimate", list(list_expectations(pending)))


def list_expectations(
    expected: Mapping[str, Forecast] | Mapping[str, Estimate] | NoForecast,
) -> Iterator[tuple[str, str, str, str]]:
    """Give rows of a forecast or an estimate, or the reason why there is none."""
    if isinstance(expected, NoForecast):
        yield "none because", expected.none_because, "", ""
        return
    for name, one in expected.items():
        yield name, format_number(one.value), format_interval(one.interval), _tell_basis(one)


def _tell_basis(expected: Forecast | Estimate) -> str:
    """Tell from how much an estimate is, or that a forecast goes beyond what other runs show."""
    if isinstance(expected, Estimate):
        return f"{expected.images} of {expected.of} images"
    return "" if expected.beyond is None else "beyond what other runs have shown"
