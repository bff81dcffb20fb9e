"""prescore probe, probes"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore import exit_codes
from prescore.cli import console, local_datasets, options, submissions, text
from prescore.cli.progress import follow_computation
from prescore.cli.suggestions import GivenNames
from prescore.files import captions
from prescore.models import ProbeRow, Probes
from prescore.models.probes import legend

_COLUMNS = ("probe", "name", "share", "metric", "score", "drop", "sd", "text", "note", "reason")


@options.expand_groups
def probes(
    target: Annotated[
        str,
        typer.Argument(metavar="DATASET/SPLIT|PB", help="A split, or the id of probes, pb_..."),
    ],
    *,
    csv_file: options.Table = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Show the latest probes of a split, or those with an id.

        prescore probes flickr8k/test
        prescore probes pb_7c1d --csv probes.csv

    `prescore probe` computes new ones; `prescore health` sums them up.

    Exit 0: printed. 2: usage, or refused. 3: there are no probes yet, or they failed.
    4: no answer from the service.
    """
    is_split = not target.startswith("pb_") or "/" in target
    with console.connect_client(connection, GivenNames(target if is_split else "")) as client:
        if is_split:
            target = submissions.complete_split(client, target)
            run = next(client.probes(dataset=target, status="succeeded"), None)
        else:
            run = client.probe(target)
    if run is None:
        console.end_failed(f"{target} has not been probed: prescore probe {target}")
    _print_probes(run, csv_file, as_json=as_json)


@options.expand_groups
def probe(
    dataset: options.LocalWholeSplit,
    *,
    wanted: Annotated[
        list[str] | None,
        typer.Option(
            "--probes",
            help="Names, separated by commas or given one by one; see below.",
            show_default="human,frequent,rare,swap,random,single",
        ),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            help="Names, separated by commas or given one by one.", show_default=options.USUAL
        ),
    ] = None,
    captions_file: Annotated[
        Path | None,
        typer.Option("--captions", metavar="F", help="A system's captions beside people's."),
    ] = None,
    evaluation: Annotated[
        str | None, typer.Option(metavar="EV", help="A run's captions beside people's.")
    ] = None,
    tokenizer: Annotated[
        str | None,
        typer.Option(
            help="ptb: for English; regex: words and punctuation; character; none: tokens already.",
            show_default="ptb",
        ),
    ] = None,
    frequent: Annotated[
        str | None,
        typer.Option(help="Words, or how many of the most frequent words. Default: the paper's."),
    ] = None,
    swap: Annotated[str | None, typer.Option(help="Pairs of words: woman=man,dog=cat.")] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help="The metric that the single sentence should score highest in.",
            show_default="bleu_4",
        ),
    ] = None,
    timeout: options.Timeout = None,
    csv_file: options.Table = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Compute which changes of captions metrics reward or do not see on a dataset.

    human     each column of references scored against the others (RvR);
              a system's captions scored against these (SvR)
    frequent  the first references with one frequent word made unknown
    rare      the first references with words seen fewer than 30, 20, 10, 5 times in
              training made unknown
    swap      the first references with one word replaced everywhere (woman -> man)
    random    the first references with tokens replaced at random
    single    the training sentence that scores best when used for every image

    `rare` and `single` need the dataset's training split, `train`. Equal probes are
    not computed twice. Where DATASET is a folder or a tar, or no service is named
    and none answers, the service runs in this process (--here).

        prescore probe flickr8k/test
        prescore probe coco.tar/test --probes human --captions results.json
        prescore probe flickr8k/test --evaluation ev_2f9c --metrics cider_d,meteor
        prescore probe multi30k-de/test --tokenizer regex --probes human,frequent

    Exit 0: done. 2: usage, or refused. 3: some metrics are not available, the
    probes failed or have not ended in time. 4: no answer from the service. 130:
    Ctrl-C.
    """
    names = console.split_names(metrics)
    request = {
        "probes": console.split_names(wanted),
        "metrics": names,
        "tokenizer": tokenizer,
        "evaluation": evaluation,
        "options": _build_options(frequent, swap, objective) or None,
    }
    given: Any = {name: value for name, value in request.items() if value is not None}
    connection = local_datasets.choose_connection(connection, dataset)
    given_names = GivenNames(local_datasets.find_name(connection, dataset), names or ())
    with console.connect_client(connection, given_names) as client:
        if captions_file is not None:
            given["captions"] = captions.read_captions(captions_file)
        split = local_datasets.provide_split(client, connection, dataset, whole=False)
        run = follow_computation(partial(client.compute_probes, split, timeout=timeout, **given))
    _print_probes(run, csv_file, as_json=as_json)
    if any(task.status == "unavailable" for task in run.tasks) or run.warnings:
        raise typer.Exit(exit_codes.FAILED)


def _build_options(frequent: str | None, swap: str | None, objective: str | None) -> dict[str, Any]:
    """Build options of single probes; those that are not given have the service's default."""
    fields: dict[str, Any] = {} if objective is None else {"objective": objective}
    if frequent is not None:
        count = frequent.strip()
        fields["frequent"] = int(count) if count.isdecimal() else console.split_names([count])
    if swap is not None:
        pairs = [pair.split("=") for pair in console.split_names([swap]) or ()]
        if any(len(pair) != 2 or not all(pair) for pair in pairs):
            raise typer.BadParameter(f"--swap: expected woman=man, found {swap!r:.60}")
        fields["swaps"] = pairs
    return fields


def _print_probes(run: Probes, csv_file: Path | None, *, as_json: bool) -> None:
    console.write_csv(csv_file, _COLUMNS, _build_csv_rows(run))
    console.print_answer(run, _format_probes, as_json=as_json)
    console.exit_by_status(run)


def _format_probes(run: Probes) -> list[str]:
    lines = text.align_rows([(run.id, run.status, str(run.dataset))])
    lines += text.format_problems(run)
    lines += text.align_rows(
        [(task.name, task.status, task.error.detail) for task in run.tasks if task.error]
    )
    for name, rows in run.probes.items():
        metrics = list(dict.fromkeys(metric for row in rows for metric in row.scores))
        heading = ("", "share", *metrics, "")
        shown = [_format_row(row, metrics) for row in rows]
        lines += [*text.align_rows([(name,)]), *text.align_rows([heading, *shown], indent="  ")]
    meanings = legend(row.name for rows in run.probes.values() for row in rows)
    return [*lines, *filter(None, [meanings])]


def _format_row(row: ProbeRow, metrics: list[str]) -> tuple[str, ...]:
    share = "" if row.share is None else f"{row.share:.1%}"
    remarks = "; ".join(filter(None, (row.text, row.note, row.reason)))
    return row.name, share, *(_format_score(row, metric) for metric in metrics), remarks


def _format_score(row: ProbeRow, metric: str) -> str:
    """Format the score, and how far it is below that of the first row."""
    drop: Any = row.drop.get(metric)
    below = "" if drop is None else f" ({-drop:+.3g})"
    return f"{text.format_number(row.scores.get(metric))}{below}"


def _build_csv_rows(run: Probes) -> Iterator[tuple[object, ...]]:
    for name, rows in run.probes.items():
        for row in rows:
            remarks = row.text, row.note, row.reason
            for metric, value in row.scores.items():
                more = row.drop.get(metric), row.sd.get(metric)
                yield name, row.name, row.share, metric, value, *more, *remarks
