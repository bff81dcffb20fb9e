"""`prescore lab study`: correlations of pre-gen with post-gen scores."""

import json
from pathlib import Path
from typing import Annotated

import typer

from prescore.cli.options import file_to_write
from service.contract.errors import RequestRefused
from workers.cli.console import AsJson, JsonOut, print_json, print_lines, report_errors

_CHECKPOINT = ".safetensors"


def study(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="Tables of rows."),
    ],
    top: Annotated[int, typer.Option(min=0, help="Print the best N pre-gen metrics.")] = 10,
    rows_out: Annotated[
        Path | None, file_to_write("Write the rows of all tables to one table.", "--rows")
    ] = None,
    as_json: AsJson = False,
    json_out: JsonOut = None,
    csv_out: Annotated[
        Path | None, file_to_write("Write every correlation to a CSV file.", "--csv")
    ] = None,
) -> None:
    """Correlate pre-gen with post-gen scores: the study of Tanti, Gatt and Muscat (2018).

    Each model's images are sorted by CIDEr-D and cut into 1 to 5 strata; R² over
    the 15 rows of all models says which images are described well. `rank`
    (Spearman's correlation of models over whole sets) says whether a metric knows
    which model is better. Metrics that are infinite in a row, or constant in a
    dataset, are left out. Tables are tab- or comma-separated, plain or gzipped:
    written by --rows, or the authors' own, whose filter0 is called miss0 here.

        prescore lab study data.txt.gz
        prescore lab study a.tsv b.tsv --csv study.csv

    Of checkpoints: `prescore submit runs/*.safetensors --dataset mine/test --bundle mine/
    --wait --here`, then `prescore correlations mine/test --compute --here`.

    Exit 0: studied. 2: usage, or refused.
    """
    from workers.bench.study import correlations, tables
    from workers.bench.study.rows import join_rows

    with report_errors():
        for path in files:
            if path.suffix == _CHECKPOINT:
                raise RequestRefused(
                    f"expected a table of rows, found the checkpoint {path}: submit it, and "
                    "study it by `prescore correlations --compute`"
                )
        parts = [tables.read_rows_table(path) for path in files]
        if not parts:
            raise RequestRefused("found nothing to study")
        rows = join_rows(parts)
        found = correlations.correlate_scores(rows)
        if rows_out is not None:
            tables.write_rows_table(rows_out, rows)
        if json_out is not None:
            json_out.write_text(json.dumps(found, allow_nan=False) + "\n", "utf-8")
        if csv_out is not None:
            csv_out.write_text(tables.format_study_csv(found), "utf-8")
    if as_json:
        print_json(found)
    else:
        print_lines(*tables.format_study(found, top).split("\n"))
