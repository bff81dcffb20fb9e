"""Answers as tables: rows of plain values, and pandas' data frames where pandas is installed."""

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from pydantic import BaseModel

from prescore.errors import PrescoreClientError

SEPARATOR = "."


class NoPandas(PrescoreClientError, ImportError):
    pass


def row(answer: BaseModel) -> dict[str, Any]:
    """The fields of an answer, nested ones by names such as `dataset.split`."""
    return dict(_flat("", answer.model_dump()))


def frame(rows: Iterable[Mapping[str, Any]], index: str | None = None) -> Any:
    """A pandas.DataFrame; raises `NoPandas` where pandas is not installed."""
    try:
        pandas = import_module("pandas")
    except ModuleNotFoundError:
        raise NoPandas(
            "to_frame() expected pandas, found none: pip install pandas, or take to_rows()"
        ) from None
    found = pandas.DataFrame(list(rows))
    return found if index is None or index not in found else found.set_index(index)


def _flat(prefix: str, fields: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{name}{SEPARATOR}", value)
        elif name == "interval":
            low, high = value or (None, None)
            yield from ((f"{prefix}low", low), (f"{prefix}high", high))
        else:
            yield f"{prefix}{name}", value
