"""Answers as tables: rows of plain values, frames of pandas, HTML for notebooks."""

import html
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any

from prescore import plain_text

ROWS_SHOWN = 100
CELL_CHARACTERS = 200
Row = Mapping[str, Any]


class Tabular:
    """An answer with a row for each metric."""

    def to_rows(self) -> list[dict[str, Any]]:
        """A dict of plain values for each metric."""
        raise NotImplementedError

    def to_frame(self) -> Any:
        """A pandas.DataFrame with a row for each metric. Raises ImportError without pandas."""
        return build_frame(self.to_rows(), index="metric")

    def _repr_html_(self) -> str:
        return format_html(repr(self).strip("<>"), self.to_rows())


def split_interval(interval: Sequence[float] | None) -> dict[str, float | None]:
    low, high = interval or (None, None)
    return {"low": low, "high": high}


def build_frame(rows: Iterable[Row], index: str | None = None) -> Any:
    """A pandas.DataFrame. Raises ImportError where pandas is not installed."""
    try:
        pandas = import_module("pandas")
    except ModuleNotFoundError:
        raise ImportError(
            "to_frame() expected pandas, found none: pip install pandas, or take to_rows()"
        ) from None
    frame = pandas.DataFrame(list(rows))
    return frame if index is None or index not in frame else frame.set_index(index)


def format_html(title: str, rows: Sequence[Row]) -> str:
    """A table of HTML in which every text is escaped; of many rows the first."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    heading = "".join(f"<th>{_format_cell(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{_format_cell(row.get(name))}</td>' for name in columns)}</tr>"
        for row in rows[:ROWS_SHOWN]
    )
    left = len(rows) - ROWS_SHOWN
    caption = f"{title}, {left} more rows" if left > 0 else title
    return (
        f"<table><caption>{_format_cell(caption)}</caption>"
        f"<thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>"
    )


def _format_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        value = ", ".join(f"{name}={text}" for name, text in value.items())
    text = str(value)
    shown = text if len(text) <= CELL_CHARACTERS else f"{text[:CELL_CHARACTERS]}…"
    return html.escape(plain_text.quoted(shown))
