"""prescore list"""

import json
from collections.abc import Sequence
from itertools import islice
from typing import Annotated

import typer

from prescore.cli import console, nearly, options, text
from prescore.cli.nearly import Meant
from prescore.models import Evaluation

_FACTS = ("evaluation", "status", "dataset", "created_at", "verdict")


@options.spread
def list_(
    on: Annotated[
        str | None,
        typer.Argument(metavar="DATASET[/SPLIT]", help="NAME or NAME@VERSION; a split of it."),
    ] = None,
    *,
    dataset: Annotated[
        str | None, typer.Option(metavar="DATASET[/SPLIT]", help="The same, as for submit.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE: only runs with this label; may be given many times."),
    ] = None,
    status: Annotated[
        str | None, typer.Option(help="queued, running, succeeded, failed or canceled.")
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            help="Scores to show, separated by commas or given one by one. Default: cider_d."
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many runs.")] = 20,
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
    wanted = console.names(metrics) or ["cider_d"]
    with console.connected(connection, Meant(dataset or "", wanted)) as client:
        nearly.check_metrics(client, console.names(metrics) or ())
        found = client.evaluations(
            dataset=dataset, status=status, labels=console.labels(label or ())
        )
        shown = list(islice(found, limit))
        if csv_file is not None:
            heading = (*_FACTS, *wanted, "labels")
            console.write_csv(csv_file, heading, (_csv_row(one, wanted) for one in shown))
        if not shown:
            console.say("no run matches")
            console.suggest(client, Meant(dataset or ""))
            console.suggest_label(client, dataset or "", console.labels(label or ()))
    if as_json:
        console.show_json(*shown, many=True)
    elif shown:
        heading = ("run", "status", "on", "begun", "verdict", *wanted, "labels")
        console.show(text.aligned([heading, *(_row(one, wanted) for one in shown)]))


def _row(one: Evaluation, metrics: Sequence[str]) -> tuple[str, ...]:
    verdict = text.verdict(one.verdict or "", one.gates)
    facts = one.id, one.status, text.on(one), text.moment(one.created_at), verdict
    scores = (one.scores.get(name) for name in metrics)
    shown = ["" if score is None else text.number(score.value) for score in scores]
    return *facts, *shown, text.labels(one.labels)


def _csv_row(one: Evaluation, metrics: Sequence[str]) -> tuple[object, ...]:
    values = (one.scores[name].value if name in one.scores else None for name in metrics)
    labels = json.dumps(one.labels, ensure_ascii=False)
    return one.id, one.status, str(one.dataset), one.created_at, one.verdict, *values, labels
