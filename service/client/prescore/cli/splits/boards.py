"""prescore leaderboard"""

import json
import shlex
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated, Any

import typer

from prescore.cli import console, options, text
from prescore.cli.nearly import Meant
from prescore.cli.splits.health import sentence
from prescore.client import Client
from prescore.models import BoardHead, MetricHealth, Scored, Standing
from prescore.models.leaderboard import ScoreBeside

_COLUMNS = ("evaluation", "checkpoint", "value", "low", "high", "created_at", "labels")
MOST = 1000  # rows of a page


@options.spread
def leaderboard(
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET[/SPLIT]", help="NAME or NAME@VERSION; a split of it.")
    ],
    *,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            help="The metric to rank by, cider_d by default; more of them, separated by commas or "
            "given one by one, are shown beside it."
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help="NAME=VALUE: only runs with this label; may be given many times."),
    ] = None,
    signature: Annotated[
        str | None,
        typer.Option(
            help="Only runs that were scored so, by default as the latest one; quote it for the "
            "shell."
        ),
    ] = None,
    over_time: Annotated[
        bool, typer.Option("--history", help="List all runs by time, the latest first.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many runs.")] = 20,
    csv_file: options.Table = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Rank the finished evaluations of a dataset by a metric.

    Runs share a rank (=) when their intervals overlap the interval of the best run of
    that rank: this split is too small to tell them apart. Runs that were scored in
    another way (their signature differs), or on a part of the split, are left out;
    --signature shows those of another one.

        prescore leaderboard flickr8k/test
        prescore leaderboard flickr8k/test --metrics cider_d,meteor,spice
        prescore leaderboard flickr8k --metrics meteor --label branch=main
        prescore leaderboard flickr8k/val --history --label run=7 --csv run7.csv

    The lines above the table say on what the runs were scored and how, and how far
    the metric can be trusted there (`prescore health`).
    """
    names = console.names(metrics) or ["cider_d"]
    wanted: dict[str, Any] = {"labels": console.labels(label or []), "signature": signature}
    with console.connected(connection, Meant(dataset, names)) as client:
        board: Any = client.history if over_time else client.leaderboard
        listing = board(dataset, names[0], metrics=names[1:], page_size=min(limit, MOST), **wanted)
        head: BoardHead = listing.head
        rows: list[Scored] = list(islice(listing, limit))
        health = None if as_json else _health(client, head)
        if not rows:
            _say_none(client, dataset, head, names[0], wanted["labels"])
        if csv_file is not None:
            ranked = () if over_time else ("rank", "tied")
            heading = (*ranked, *_COLUMNS, *names[1:])
            console.write_csv(csv_file, heading, (_csv_row(each, names[1:]) for each in rows))
    if as_json:
        console.print_json([_json(each, names[1:]) for each in rows])
    elif rows:
        asked = ["--history"] if over_time else []
        console.show([*_heading(head, health, asked), *_table(rows, *names)])


def _say_none(
    client: Client, dataset: str, head: BoardHead, metric: str, labels: Mapping[str, str]
) -> None:
    if head.none_because:
        console.say(f"{dataset}: {head.none_because}")
        return
    console.say(f"no evaluation of {dataset} has a {metric} yet")
    console.suggest_label(client, dataset, labels)


def _health(client: Client, head: BoardHead) -> MetricHealth | None:
    """The health of the board's metric on its split."""
    found = client.health(str(head.dataset))
    return (found or {}).get(head.metric)


def _heading(head: BoardHead, health: MetricHealth | None, asked: Sequence[str]) -> list[str]:
    better = {True: "higher is better", False: "lower is better", None: ""}[head.higher_is_better]
    others = [f"{count} scored as {signature}" for signature, count in head.others.items()]
    facts = [
        ("on", str(head.dataset)),
        ("metric", ", ".join(filter(None, (head.metric, better)))),
        ("scored as", head.signature or ""),
        ("left out", "; ".join(others)),
        ("show them", _command(head, asked)),
        ("health", "" if health is None else sentence(health)),
    ]
    return [*text.aligned([fact for fact in facts if fact[1]]), ""]


def _command(head: BoardHead, asked: Sequence[str]) -> str:
    """The command that shows the most runs of those that are left out."""
    if not head.others:
        return ""
    most = max(head.others, key=lambda signature: head.others[signature])
    words = "prescore", "leaderboard", str(head.dataset), "--metrics", head.metric, *asked
    return shlex.join([*words, "--signature", most])


def _table(rows: Sequence[Scored], metric: str, *more: str) -> list[str]:
    heading = ("rank", metric, "95 %", "run", "begun", "labels", *more)
    shown = [
        (*row, *(_value(each.scores.get(name)) for name in more))
        for row, each in zip(text.scored_rows(rows), rows, strict=True)
    ]
    return text.aligned([heading, *shown])


def _value(found: ScoreBeside | None) -> str:
    return "" if found is None else text.number(found.value)


def _json(each: Scored, more: Sequence[str]) -> dict[str, Any]:
    """A row as the service tells it; with other metrics in `scores`, by name."""
    fields = each.model_dump(mode="json", exclude={"scores"})
    if not more:
        return fields
    beside = {name: each.scores.get(name) for name in more}
    return {
        **fields,
        "scores": {n: None if one is None else one.value for n, one in beside.items()},
    }


def _csv_row(each: Scored, more: Sequence[str]) -> tuple[object, ...]:
    low, high = each.interval or (None, None)
    labels = json.dumps(each.labels, ensure_ascii=False)
    place = (each.rank, each.tied) if isinstance(each, Standing) else ()
    facts = each.evaluation, each.checkpoint, each.value, low, high, each.created_at, labels
    beside = (each.scores.get(name) for name in more)
    return *place, *facts, *(None if one is None else one.value for one in beside)
