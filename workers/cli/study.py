"""`prescore lab study`: correlations of pre-gen with post-gen scores."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from prescore.cli.options import file_to_write
from prescore.models import Precision
from service.contract import settings
from service.contract.api.requests import Decoding
from service.contract.errors import RequestRefused
from service.contract.metrics import tokenizers
from workers.cli.console import (
    USUAL,
    AsJson,
    JsonOut,
    Tokens,
    errors,
    names,
    progresses,
    say,
    show,
    show_json,
)
from workers.jobs.toolbox import Toolbox
from workers.offline import sources, studies
from workers.offline.studies import Asked

if TYPE_CHECKING:
    from workers.offline.studies import Gathered

_CHECKPOINT = ".safetensors"
_INCOMPLETE = 3  # a checkpoint or a metric is missing


def study(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES", help="Tables of rows, or checkpoints (.safetensors)."),
    ],
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="BUNDLE[/SPLIT]",
            help="The dataset, with features, on which to score checkpoints.",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            help="Post-gen metrics, separated by commas or given one by one.", show_default=USUAL
        ),
    ] = None,
    idf: Annotated[
        Literal["dataset", "stratum"],
        typer.Option(help="Where CIDEr counts document frequencies; stratum: as published."),
    ] = "dataset",
    tokenizer: Tokens = tokenizers.USUAL,
    precision: Annotated[
        Precision, typer.Option(help="Precision of pre-gen scores.")
    ] = Precision.FP32,
    beam: Annotated[
        int, typer.Option(min=1, max=100, help="Beam width; 1 is greedy decoding.")
    ] = 3,
    length_power: Annotated[
        float,
        typer.Option(min=0, max=5, help="Length normalisation; 1 compares means over words."),
    ] = 0.0,
    top: Annotated[int, typer.Option(min=0, help="Print the best N pre-gen metrics.")] = 10,
    rows_out: Annotated[
        Path | None, file_to_write("Write all rows to a table, for the next study.", "--rows")
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
        prescore lab study runs/*.safetensors --dataset flickr8k/test --rows a.tsv
        prescore lab study a.tsv runs/new/*.safetensors --dataset flickr8k/test

    Exit 0: studied. 2: usage, or refused. 3: a checkpoint or a metric is missing.
    """
    from workers.analysis.study import correlations, tables
    from workers.analysis.study import files as tables_of_rows
    from workers.analysis.study.rows import join

    with errors():
        checkpoints = [path for path in files if path.suffix == _CHECKPOINT]
        parts = [tables_of_rows.read(path) for path in files if path not in checkpoints]
        missing: Mapping[str, str] = {}
        if checkpoints:
            if dataset is None:
                raise typer.BadParameter("checkpoints need a --dataset to be scored on")
            decoding = Decoding(beam=beam, length_power=length_power)
            asked = Asked(names(*metrics or [USUAL]), idf, tokenizer, decoding, precision.value)
            gathered = _gather(checkpoints, dataset, asked)
            parts, missing = [*parts, *gathered.rows], gathered.missing
        for name, reason in missing.items():
            say(f"{name}: {reason}")
        if not parts:
            raise RequestRefused("found nothing to study")
        rows = join(parts)
        found = correlations.study(rows)
        if rows_out is not None:
            tables_of_rows.write(rows_out, rows)
        if json_out is not None:
            json_out.write_text(json.dumps(found, allow_nan=False) + "\n", "utf-8")
        if csv_out is not None:
            csv_out.write_text(tables.csv_text(found), "utf-8")
    if as_json:
        show_json(found)
    else:
        show(*tables.text(found, top).split("\n"))
    if missing:
        raise typer.Exit(_INCOMPLETE)


def _gather(checkpoints: Sequence[Path], dataset: str, asked: Asked) -> "Gathered":
    with closing(Toolbox.of(settings.load())) as toolbox, progresses() as told:
        source = sources.find(dataset, toolbox.places)
        return studies.gather(checkpoints, source, asked, toolbox, told)
