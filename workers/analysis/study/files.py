"""Rows as a table in a file, in the form in which those of the pre-gen paper were published:

    dataset  model (or architecture, run)  num_strata  stratum  idf (optional)  cider_d …
    mean_max_normcount_prefix0 …

The file is separated by tabs or commas, and may be gzipped. If its post-gen scores have the paper's
names, it was made by the authors' code, whose `…_filter0` is our `…_miss0`, and which counts
documents in strata.
"""

import csv
import gzip
import io
import math
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

import numpy as np

from prescore.models.studies import StudyIdf
from prescore.plain_text import cell, write_table
from service.contract.errors import RequestRefused
from service.contract.metrics import catalogue
from service.contract.metrics.families import kind_of
from workers.analysis.study.rows import Rows
from workers.metrics.family import Floats

THEIRS: Mapping[str, str] = {"METEOR": "meteor", "CIDEr": "cider_d", "SPICE": "spice", "WMD": "wmd"}
_OWN = ("dataset", "model", "num_strata", "stratum", "idf")
_IDFS: tuple[StudyIdf, ...] = ("dataset", "stratum")


def read(path: Path) -> Rows:
    """Read rows from a file. Raises RequestRefused, with line and column, if it is not such a
    table.
    """
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw).decode("utf-8")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise RequestRefused(f"{path} cannot be read: {error}") from None
    delimiter = "\t" if "\t" in text.partition("\n")[0] else ","
    table = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    lines = list(table)
    names = _names(path, table.fieldnames or [])
    if not lines:
        raise RequestRefused(f"{path}: expected rows, found none")
    strata = [_strata(path, at, line) for at, line in enumerate(lines, 2)]
    scores = {ours: _column(path, lines, theirs) for theirs, ours in names.items()}
    return Rows(
        datasets=[_name(line["dataset"]) for line in lines],
        models=[_model(line) for line in lines],
        strata=[count for count, _ in strata],
        stratum=[number for _, number in strata],
        pregen={name: column for name, column in scores.items() if name in catalogue.PREGEN},
        postgen={name: column for name, column in scores.items() if _is_postgen(name)},
        idf=_idf(path, lines),
    )


def write(path: Path, rows: Rows) -> None:
    """Write rows as a file that `read` reads, separated by tabs."""
    scores = {**rows.postgen, **rows.pregen}
    with path.open("w", encoding="utf-8", newline="") as stream:
        own = zip(rows.datasets, rows.models, rows.strata, rows.stratum, strict=True)
        lines = (
            [*first, rows.idf or "", *(_text(column[at]) for column in scores.values())]
            for at, first in enumerate(own)
        )
        write_table(stream, chain([[*_OWN, *scores]], lines), delimiter="\t", line_end="\n")


def _idf(path: Path, lines: Sequence[Mapping[str, str]]) -> StudyIdf | None:
    if not THEIRS.keys().isdisjoint(lines[0]):
        return "stratum"
    found = {line.get("idf") or None for line in lines}
    for idf in (None, *_IDFS):
        if found == {idf}:
            return idf
    raise RequestRefused(
        f"{path}: expected one idf for all rows, {' or '.join(_IDFS)}, "
        f"found {', '.join(sorted(map(str, found)))}"
    )


def _names(path: Path, header: Sequence[str]) -> dict[str, str]:
    """The columns of scores, and what they are called here."""
    wanted = {"dataset", "num_strata", "stratum"}
    missing = sorted(wanted - set(header))
    if missing:
        raise RequestRefused(f"{path}: expected a table with the columns {', '.join(missing)}")
    if "model" not in header and not {"architecture", "run"} <= set(header):
        raise RequestRefused(f"{path}: expected a column `model`, or `architecture` and `run`")
    theirs = not THEIRS.keys().isdisjoint(header)
    names: dict[str, str] = {}
    for name in header:
        ours = THEIRS.get(name, name.replace("_filter0", "_miss0") if theirs else name)
        if ours in catalogue.PREGEN or _is_postgen(ours):
            names[name] = ours
    for side in ("pre-gen", "post-gen"):
        if not any(_is_postgen(name) is (side == "post-gen") for name in names.values()):
            raise RequestRefused(f"{path}: expected a column of {side} scores, found none")
    return names


def _is_postgen(name: str) -> bool:
    """Whether this is the name of a post-gen metric; a learned metric may name its model."""
    return kind_of(name) in catalogue.POSTGEN


def _strata(path: Path, at: int, line: Mapping[str, str]) -> tuple[int, int]:
    given = line["num_strata"], line["stratum"]
    try:
        count, number = map(int, given)
    except (TypeError, ValueError):
        count, number = 0, 0
    if not 0 <= number < count:
        raise RequestRefused(
            f"{path}, line {at}: expected how many strata there are and which it is, from 0, "
            f"found {given[0]!r:.20} and {given[1]!r:.20}"
        )
    return count, number


def _model(line: Mapping[str, str]) -> str:
    own = line["model"] if "model" in line else f"{line['architecture']}_{line['run']}"
    return _name(own)


def _name(written: str | None) -> str:
    """A name as it was before `write` made sure that no spreadsheet takes it for a formula."""
    own = written or ""
    before = own.removeprefix("'")
    return before if cell(before) == own else own


def _column(path: Path, lines: Sequence[Mapping[str, str]], name: str) -> Floats:
    try:
        return np.array([_number(line[name]) for line in lines])
    except (TypeError, ValueError):
        at, found = next(
            (at, line[name]) for at, line in enumerate(lines, 2) if not _is_number(line[name])
        )
        raise RequestRefused(
            f"{path}, line {at}: expected a number in {name}, found {found!r:.40}"
        ) from None


def _is_number(text: str) -> bool:
    try:
        _number(text)
    except (TypeError, ValueError):
        return False
    return True


def _number(text: str) -> float:
    """The number in a cell. If a line ends early, the cell is None, which raises TypeError."""
    return math.nan if text == "" else float(text)


def _text(value: float) -> str:
    return "" if math.isnan(value) else repr(float(value))
