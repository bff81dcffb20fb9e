"""`prescore lab study`: what pre-gen scores say of post-gen ones, and what they do not."""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

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
    check_folders,
    errors,
    names,
    progresses,
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
        typer.Option(metavar="BUNDLE[/SPLIT]", help="With features: where checkpoints are tried."),
    ] = None,
    metrics: Annotated[str, typer.Option(help="Of their captions, by commas.")] = USUAL,
    idf: Annotated[
        Literal["dataset", "stratum"],
        typer.Option(help="Where CIDEr counts documents; stratum: as in the published table."),
    ] = "dataset",
    tokenizer: Tokens = tokenizers.USUAL,
    precision: Annotated[
        Precision, typer.Option(help="Precision of pre-gen scores.")
    ] = Precision.FP32,
    beam: Annotated[int, typer.Option(min=1, max=100, help="Its width; 1 is greedy.")] = 3,
    length_power: Annotated[
        float,
        typer.Option(min=0, max=5, help="Length normalisation; 1 compares means over words."),
    ] = 0.0,
    top: Annotated[int, typer.Option(min=0, help="So many of the best are printed.")] = 10,
    rows_out: Annotated[
        Path | None, typer.Option("--rows", help="All rows, into a table for the next study.")
    ] = None,
    as_json: AsJson = False,
    json_out: JsonOut = None,
    csv_out: Annotated[
        Path | None, typer.Option("--csv", help="Every correlation, into a file.")
    ] = None,
) -> None:
    """Say how pre-gen scores go with post-gen ones: the study of Tanti, Gatt and Muscat (2018).

    Each model's images are sorted by their CIDEr-D and cut into 1 to 5 strata;
    over all 15 rows of all models R² says which images are described well.
    Whether a model is better than another is what `rank` says: Spearman's
    correlation over whole sets, model by model. Left out are metrics that are
    infinite in a row, or constant in a dataset. Tables are tab- or
    comma-separated, perhaps gzipped: those of --rows, or the authors' own, whose
    filter0 is our miss0.

        prescore lab study data.txt.gz
        prescore lab study runs/*.safetensors --dataset flickr8k/test --rows a.tsv
        prescore lab study a.tsv runs/new/*.safetensors --dataset flickr8k/test

    Exit 0: studied. 1: refused. 2: usage. 3: without a checkpoint or a metric.
    """
    from workers.analysis.study import correlations, tables
    from workers.analysis.study import files as tables_of_rows
    from workers.analysis.study.rows import join

    with errors():
        check_folders((rows_out, json_out, csv_out))
        checkpoints = [path for path in files if path.suffix == _CHECKPOINT]
        parts = [tables_of_rows.read(path) for path in files if path not in checkpoints]
        missing: Mapping[str, str] = {}
        if checkpoints:
            if dataset is None:
                raise typer.BadParameter("checkpoints are tried on a --dataset")
            decoding = Decoding(beam=beam, length_power=length_power)
            asked = Asked(names(metrics), idf, tokenizer, decoding, precision.value)
            gathered = _gather(checkpoints, dataset, asked)
            parts, missing = [*parts, *gathered.rows], gathered.missing
        for name, reason in missing.items():
            typer.echo(f"{name}: {reason}", err=True)
        if not parts:
            raise RequestRefused("there is nothing to study")
        rows = join(parts)
        found = correlations.study(rows)
    document = json.dumps(found, allow_nan=False)
    if rows_out is not None:
        tables_of_rows.write(rows_out, rows)
    if json_out is not None:
        json_out.write_text(document + "\n", "utf-8")
    if csv_out is not None:
        csv_out.write_text(tables.csv_text(found), "utf-8")
    typer.echo(document if as_json else tables.text(found, top))
    if missing:
        raise typer.Exit(_INCOMPLETE)


def _gather(checkpoints: Sequence[Path], dataset: str, asked: Asked) -> "Gathered":
    with closing(Toolbox.of(settings.load())) as toolbox, progresses() as told:
        source = sources.find(dataset, toolbox.places)
        return studies.gather(checkpoints, source, asked, toolbox, told)
