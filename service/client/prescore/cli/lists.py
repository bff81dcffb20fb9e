"""prescore list"""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Annotated

import typer

from prescore.cli import console, gate_tables, options, run_summaries, suggestions, text
from prescore.cli.suggestions import GivenNames
from prescore.client import Client
from prescore.models import Evaluation

_FACTS = ("evaluation", "status", "dataset", "created_at", "verdict")


@options.expand_groups
def list_(
    on: Annotated[
        str | None,
        typer.Argument(metavar="DATASET[/SPLIT]", help="NAME or NAME@VERSION; a split of it."),
    ] = None,
    *,
    dataset: Annotated[
        str | None, typer.Option(metavar="DATASET[/SPLIT]", help="The same, as for submit.")
    ] = None,
    label: options.LabelFilter = None,
    status: Annotated[
        str | None,
        typer.Option(help="unfinished (queued or running), succeeded, failed or canceled."),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            help="Scores to show, separated by commas or given one by one. Default: cider_d."
        ),
    ] = None,
    limit: options.MostRuns = 20,
    csv_file: options.Table = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """List runs, the latest first: state, dataset, some scores, labels.

    prescore list
    prescore list flickr8k/test --status succeeded --metrics cider_d,perplexity
    prescore list --label branch=main --limit 100 --csv runs.csv
    prescore list --dataset flickr8k/test --label run=7 --json | jq -r '.[].id'
    """
    if on is not None and dataset is not None:
        raise typer.BadParameter(f"expected one dataset, found {on!r:.100} and {dataset!r:.100}")
    dataset = on or dataset
    wanted = console.split_names(metrics) or ["cider_d"]
    with console.connect_client(connection, GivenNames(dataset or "", wanted)) as client:
        suggestions.check_metrics(client, console.split_names(metrics) or ())
        labels = console.parse_labels(label)
        listing = client.evaluations(dataset=dataset, status=status, labels=labels)
        shown = list(islice(listing, limit))
        rows = (_build_csv_row(run, wanted) for run in shown)
        console.write_csv(csv_file, (*_FACTS, *wanted, "labels"), rows)
        if not shown:
            _print_suggestions(client, dataset or "", labels)
    if as_json or shown:
        console.print_answers(shown, partial(_format_runs, metrics=wanted), as_json=as_json)


def _print_suggestions(client: Client, dataset: str, labels: Mapping[str, str]) -> None:
    console.print_note("no run matches")
    for sentence in suggestions.suggest_names(client, GivenNames(dataset)):
        console.print_note(sentence)
    for sentence in suggestions.suggest_labels(client, dataset, labels):
        console.print_note(sentence)


def _format_runs(runs: Sequence[Evaluation], metrics: Sequence[str]) -> list[str]:
    heading = ("run", "status", "on", "begun", "verdict", *metrics, "labels")
    return text.align_rows([heading, *(_format_row(run, metrics) for run in runs)])


def _format_row(run: Evaluation, metrics: Sequence[str]) -> tuple[str, ...]:
    scores = (run.scores.get(name) for name in metrics)
    return (
        run.id,
        run.status,
        run_summaries.describe_split(run),
        text.format_moment(run.created_at),
        gate_tables.format_verdict(run.verdict or "", run.gates),
        *("" if score is None else text.format_number(score.value) for score in scores),
        text.format_labels(run.labels),
    )


def _build_csv_row(run: Evaluation, metrics: Sequence[str]) -> tuple[object, ...]:
    values = (run.scores[name].value if name in run.scores else None for name in metrics)
    labels = json.dumps(run.labels, ensure_ascii=False)
    return run.id, run.status, str(run.dataset), run.created_at, run.verdict, *values, labels
