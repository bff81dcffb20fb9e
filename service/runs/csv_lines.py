"""Lines of CSV, for answers that are streamed."""

import csv
import io
from collections.abc import Iterable


def line(values: Iterable[object]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(values)
    return buffer.getvalue()
