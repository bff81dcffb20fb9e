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
    metric: Annotated[str, typer.Option(help="By which they are ranked.")] = "cider_d",
    label: Annotated[
        list[str] | None, typer.Option(help="NAME=VALUE: those that have it; may be given again.")
    ] = None,
    over_time: Annotated[
        bool, typer.Option("--history", help="The metric over time: the latest first, all of them.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 20,
    csv_file: Annotated[
        Path | None, typer.Option("--csv", metavar="F", help="Write them to a CSV file too.")
    ] = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Rank the finished evaluations of a dataset by a metric.

    A rank is shared (=) by those whose intervals overlap that of its best one: on this
    split nobody can tell them apart. What was scored in another way (its signature
    differs), or on a part of the split, is left out.

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
