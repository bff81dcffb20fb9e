"""Answers as lines for people. Pure functions; what others wrote is made harmless here."""

from collections.abc import Iterable, Mapping, Sequence

from prescore.cli.console import plain
from prescore.models import Compared, Dataset, Evaluation, Score, Scored, Standing, Work


def aligned(rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    cells = [[plain(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        indent
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def summary(evaluation: Evaluation) -> list[str]:
    """All that matters of a run."""
    facts = [
        ("checkpoint", evaluation.checkpoint or ""),
        ("labels", ", ".join(f"{name}={value}" for name, value in evaluation.labels.items())),
        ("verdict", evaluation.verdict or ""),
        ("error", evaluation.error.detail or evaluation.error.title if evaluation.error else ""),
    ]
    oddities = [(one.code, one.image or "", one.detail) for one in evaluation.warnings]
    return [
        *aligned([(evaluation.id, evaluation.status, str(evaluation.dataset))]),
        *aligned([fact for fact in facts if fact[1]]),
        *_section("works", [work_row(work) for work in evaluation.works]),
        *_section("scores", score_rows(evaluation.scores)),
        *_section("warnings", oddities),
    ]


def work_row(work: Work) -> tuple[str, str, str, str, str]:
    return work.name, work.status, _progress(work), _seconds(work), _remarks(work)


def score_rows(scores: Mapping[str, Score]) -> list[tuple[str, str, str, str]]:
    return [
        (name, number(score.value), interval(score), direction(score))
        for name, score in scores.items()
    ]


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:#.4g}"


def interval(score: Score | Scored | Compared) -> str:
    if score.interval is None:
        return ""
    low, high = score.interval
    return f"[{number(low)}, {number(high)}]"


def scored_rows(found: Iterable[Scored]) -> list[tuple[str, ...]]:
    """`=` marks a rank that is shared."""
    return [_scored_row(each) for each in found]


def _scored_row(each: Scored) -> tuple[str, ...]:
    place = f"{'=' if each.tied else ''}{each.rank}" if isinstance(each, Standing) else ""
    marked = ", ".join(f"{name}={value}" for name, value in each.labels.items())
    when = "" if each.created_at is None else f"{each.created_at:%Y-%m-%d %H:%M}"
    return place.rjust(4), number(each.value), interval(each), each.evaluation, when, marked


def direction(score: Score) -> str:
    return "lower is better" if score.higher_is_better is False else ""


def dataset_rows(datasets: Iterable[Dataset]) -> list[tuple[str, str, str, str]]:
    return [
        (str(dataset), _splits(dataset), _features(dataset), dataset.digest) for dataset in datasets
    ]


def _section(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    return [title, *aligned(rows, indent="  ")] if rows else []


def _progress(work: Work) -> str:
    if work.progress is None or not work.progress.total:
        return ""
    return f"{work.progress.done}/{work.progress.total}"


def _seconds(work: Work) -> str:
    return "" if work.seconds is None else f"{work.seconds:.1f} s"


def _remarks(work: Work) -> str:
    remarks = ["cached"] if work.cached else []
    if work.attempts > 1:
        remarks.append(f"attempt {work.attempts}")
    if work.error is not None:
        remarks.append(work.error.detail or work.error.title or work.error.code)
    return ", ".join(remarks)


def _splits(dataset: Dataset) -> str:
    return ", ".join(
        f"{name} {split.images} images {split.references} references"
        for name, split in dataset.splits.items()
    )


def _features(dataset: Dataset) -> str:
    if dataset.features is None:
        return "captions only"
    encoder = dataset.features.encoder
    return f"features {dataset.features.size} of {encoder.name if encoder else 'an encoder'}"
