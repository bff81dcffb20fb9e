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
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from prescore.models.studies import StudyIdf
from prescore.plain_text import cell, quoted, write_table
from service.contract.errors import RequestRefused
from service.contract.metrics import catalogue
from service.contract.metrics.families import find_family_name
from workers.bench.study.rows import StratumRows
from workers.metrics.family import Floats

THEIRS: Mapping[str, str] = {"METEOR": "meteor", "CIDEr": "cider_d", "SPICE": "spice", "WMD": "wmd"}
_OWN_COLUMNS = ("dataset", "model", "num_strata", "stratum", "idf")
_IDFS: tuple[StudyIdf, ...] = ("dataset", "stratum")


def read_rows_table(path: Path) -> StratumRows:
    """Read rows from a file. Raises RequestRefused, with line and column, if it is no table."""
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
    return StratumRows(
        datasets=[_name(line["dataset"]) for line in lines],
        models=[_model(line) for line in lines],
        strata=[count for count, _ in strata],
        stratum=[number for _, number in strata],
        pregen={name: column for name, column in scores.items() if name in catalogue.PREGEN},
        postgen={name: column for name, column in scores.items() if _is_postgen(name)},
        idf=_idf(path, lines),
    )


def write_rows_table(path: Path, rows: StratumRows) -> None:
    """Write rows as a file that `read` reads, separated by tabs."""
    scores = {**rows.postgen, **rows.pregen}
    with path.open("w", encoding="utf-8", newline="") as stream:
        own = zip(rows.datasets, rows.models, rows.strata, rows.stratum, strict=True)
        lines = (
            [*first, rows.idf or "", *(_text(column[at]) for column in scores.values())]
            for at, first in enumerate(own)
        )
        write_table(stream, chain([[*_OWN_COLUMNS, *scores]], lines), delimiter="\t", line_end="\n")


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
    """Names of the columns of scores, with the names of their metrics here."""
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
    """True for the name of a post-gen metric; a learned metric may name its model."""
    return find_family_name(name) in catalogue.POSTGEN


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
    return _name(line["model"] if "model" in line else f"{line['architecture']}_{line['run']}")


def _name(written: str | None) -> str:
    """A name as it was before `write` made sure that no spreadsheet takes it for a formula."""
    own = written or ""
    before = own.removeprefix("'")
    return before if cell(before) == own else own


def _column(path: Path, lines: Sequence[Mapping[str, str]], name: str) -> Floats:
    found = []
    for at, line in enumerate(lines, 2):
        try:
            found.append(math.nan if line[name] == "" else float(line[name]))
        except (TypeError, ValueError):  # a line that ends early has None
            raise RequestRefused(
                f"{path}, line {at}: expected a number in {name}, found {line[name]!r:.40}"
            ) from None
    return np.array(found)


def _text(value: float) -> str:
    return "" if math.isnan(value) else repr(float(value))


FoundTable = Mapping[str, Any]
_HEADLINE = [catalogue.find_metric(name).name for name in catalogue.HEADLINE]
_COLUMNS = ("postgen", "place", "pregen", "dataset", "r", "r2", "p")
_RANKS = ("spearman", "spearman_p", "models")
_IDF = {
    "dataset": "CIDEr counts documents in the whole set",
    "stratum": "CIDEr counts documents in each stratum",
    None: "where CIDEr counts documents is not said",
}
_NARROW = 45  # characters: the longest name of a metric, and a little


def format_study(found: FoundTable, top: int) -> str:
    """A text with the `top` best of each metric, and the headline ones wherever they are."""
    pregen = found["pregen"]
    head = (
        f"{found['rows']:,} rows of {found['models']:,} models; {_IDF[found['idf']]}\n"
        f"{pregen['remain']} of {pregen['of']} pre-gen metrics remain: {pregen['infinite']} are "
        f"infinite (or wanting) in a row, {pregen['constant']} constant in a dataset"
    )
    blocks = [_block(name, metric, top) for name, metric in found["metrics"].items()]
    return "\n\n".join([head, *blocks])


def _block(name: str, metric: FoundTable, top: int) -> str:
    if metric["reason"] is not None:
        return quoted(f"{name}: {metric['reason']}")
    correlations = metric["correlations"]
    datasets = list(correlations[0]["datasets"]) if correlations else []
    titles = "".join(f"  {quoted(dataset):>20.20}" for dataset in datasets)
    lines = [f"{name}{_share(metric)}", f"{'':>5}{'':{_NARROW}}{'R²':>7}{titles}"]
    lines += [
        _line(place, each)
        for place, each in enumerate(correlations, 1)
        if place <= top or each["metric"] in _HEADLINE
    ]
    return "\n".join(lines)


def _share(metric: FoundTable) -> str:
    share = metric["of_images"]
    if share is None:
        return ""
    return f": {share:.2%} of its variance lies between strata of images, not between models"


def _line(place: int, each: FoundTable) -> str:
    own = "".join(f"  {_of_dataset(found):>20}" for found in each["datasets"].values())
    return f"{place:>4} {each['metric']:{_NARROW}}{_rounded(each['r2'], 4):>7}{own}"


def _of_dataset(found: FoundTable) -> str:
    return f"{_rounded(found['r2'], 4)} rank {_rounded(found['spearman'], 2, '+')}"


def _rounded(value: float | None, digits: int, sign: str = "") -> str:
    return "none" if value is None else f"{value:{sign}.{digits}f}"


def format_study_csv(found: FoundTable) -> str:
    """CSV with every correlation, over all rows (no dataset) and within each dataset."""
    stream = StringIO()
    columns = (*_COLUMNS, *_RANKS)
    rows = ([row.get(name, "") for name in columns] for row in _rows(found))
    write_table(stream, [columns, *rows], line_end="\n")
    return stream.getvalue()


def _rows(found: FoundTable) -> Iterator[dict[str, Any]]:
    for name, metric in found["metrics"].items():
        for place, each in enumerate(metric["correlations"], 1):
            own = {"postgen": name, "place": place, "pregen": each["metric"]}
            yield own | {key: each[key] for key in ("r", "r2", "p")}
            for dataset, values in each["datasets"].items():
                yield own | {"dataset": dataset, **values}
