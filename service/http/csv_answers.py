"""Answers as CSV, for requests with `Accept: text/csv`."""

import csv
import io
from collections.abc import Iterable, Sequence

from fastapi import Response

TYPE = "text/csv"


def is_wanted(accept: str | None) -> bool:
    return accept is not None and TYPE in accept


def answer(rows: Iterable[Sequence[object]]) -> Response:
    """Rows as a CSV answer; the first row has the names of the columns."""
    buffer = io.StringIO()
    csv.writer(buffer).writerows(rows)
    return Response(buffer.getvalue(), media_type=TYPE)
