"""prescore leaderboard"""

import json
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore.cli import console, options, text
from prescore.models import Scored, Standing

_COLUMNS = ("evaluation", "checkpoint", "value", "low", "high", "created_at", "labels")


@options.spread
def leaderboard(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET[/SPLIT]", help="NAME or NAME@VERSION; a split of it.")
    ],
    *,
    metric: Annotated[str, typer.Option(help="The metric to rank by.")] = "cider_d",
    label: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE: only runs with this label; may be given many times."),
    ] = None,
    over_time: Annotated[
        bool, typer.Option("--history", help="List all runs by time, the latest first.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many runs.")] = 20,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="F", help="Write the list to a CSV file too.")
    ] = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Rank the finished evaluations of a dataset by a metric.

    Runs share a rank (=) when their intervals overlap the interval of the best run of
    that rank: this split is too small to tell them apart. Runs that were scored in
    another way (their signature differs), or on a part of the split, are left out.

        prescore leaderboard flickr8k/test
        prescore leaderboard flickr8k --metric meteor --label branch=main
        prescore leaderboard flickr8k/val --history --label run=7 --csv run7.csv
    """
    name, _, split = dataset.partition("/")
    wanted: dict[str, Any] = {"split": split or None, "labels": console.labels(label or [])}
    found: list[Standing] | list[Scored]
    with console.connected(connection) as client:
        if over_time:
            found = list(islice(client.history(name, metric=metric, **wanted), limit))
        else:
            found = list(islice(client.leaderboard(name, metric=metric, **wanted), limit))
        if csv_file is not None:
            ranked = () if over_time else ("rank", "tied")
            console.write_csv(csv_file, (*ranked, *_COLUMNS), map(_csv_row, found))
    if as_json:
        console.show_json(*found, many=True)
    elif not found:
        console.say(f"no evaluation of {dataset} has a {metric} yet")
    else:
        console.show(text.aligned(text.scored_rows(found)))


def _csv_row(each: Scored) -> tuple[object, ...]:
    low, high = each.interval or (None, None)
    labels = json.dumps(each.labels, ensure_ascii=False)
    place = (each.rank, each.tied) if isinstance(each, Standing) else ()
    return *place, each.evaluation, each.checkpoint, each.value, low, high, each.created_at, labels
