"""Values as text for people: aligned rows, numbers, intervals, moments, labels. Text that others
wrote is plain in them.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from prescore.models import Learned, Probes
from prescore.plain_text import format_count, quoted

WIDEST = 200  # columns have at most so many characters; a longer text goes beyond its column


def align_rows(rows: Iterable[Sequence[str]], indent: str = "") -> list[str]:
    cells = [[quoted(cell) for cell in row] for row in rows]
    widths = [min(WIDEST, max(map(len, column))) for column in zip(*cells, strict=True)]
    return [
        indent
        + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def shorten(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def align_facts(facts: Iterable[tuple[str, str]]) -> list[str]:
    """Align names and values, without facts that are empty."""
    return align_rows([fact for fact in facts if fact[1]])


def format_section(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    return [title, *align_rows(rows, indent="  ")] if rows else []


def format_number(value: float | None) -> str:
    return "-" if value is None else f"{value:#.4g}".rstrip(".")


def format_difference(difference: float) -> str:
    return f"{difference:+#.4g}".rstrip(".")


def format_interval(interval: Sequence[float | None] | None) -> str:
    if interval is None:
        return ""
    low, high = interval
    return f"[{format_number(low)}, {format_number(high)}]"


def format_moment(when: datetime | None) -> str:
    return "" if when is None else f"{when:%Y-%m-%d %H:%M}"


def format_labels(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in labels.items())


def format_problems(run: Learned | Probes) -> list[str]:
    """Format the error that ended a run, and its warnings."""
    error = [] if run.error is None else [("error", run.error.detail or run.error.code)]
    return [*align_rows(error), *align_rows((one.code, one.detail) for one in run.warnings)]


def advise_computing(split: str, done: str, command: str) -> str:
    """Say how to let a split be `done`, such as probed."""
    return f"{split} has not been {done}: prescore {command} {split} --compute"


def group_warnings(warnings: Iterable[tuple[str, str, str | None]]) -> list[tuple[str, str, str]]:
    """Give code, image and detail of each kind of warning, from (code, detail, image).

    Warnings of images are of one kind if they have the same code; the detail then counts the images
    and names the first.
    """
    kinds: dict[tuple[str, str | None], list[tuple[str, str]]] = {}
    for code, detail, image in warnings:
        kinds.setdefault((code, detail if image is None else None), []).append(
            (detail, image or "")
        )
    return [_merge_warnings(code, same) for (code, _), same in kinds.items()]


def _merge_warnings(code: str, same: Sequence[tuple[str, str]]) -> tuple[str, str, str]:
    detail, image = same[0]
    if len(same) == 1 or not image:
        return code, image, detail
    images = format_count(len(same), "image")
    if len(dict(same)) == 1:
        return code, "", f"{detail} ({images}, the first is {image!r:.100})"
    return code, "", f"{images}, such as {image!r:.100}: {detail}"
