"""Answers as CSV, for requests with `Accept: text/csv`."""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence

from fastapi import Response
from fastapi.responses import StreamingResponse

from prescore import plain_text
from service.http.streaming import paced

TYPE = "text/csv"
ADVICE = f"for CSV send the header `Accept: {TYPE}`"


def is_wanted(accept: str | None) -> bool:
    return accept is not None and TYPE in accept


def answer(rows: Iterable[Sequence[object]]) -> Response:
    """Rows as a CSV answer, in which no text is a formula; the first has the columns' names."""
    return Response(b"".join(_lines(rows)), media_type=TYPE)


def streamed(rows: Iterable[Sequence[object]]) -> Response:
    """Many rows, which are made while they are sent."""
    return StreamingResponse(paced(_lines(rows)), media_type=TYPE)


def _lines(rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    for row in rows:
        writer.writerow([plain_text.cell(value) for value in row])
        yield buffer.getvalue().encode()
        buffer.seek(0)
        buffer.truncate()
