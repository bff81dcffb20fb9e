"""prescore leaderboard"""

import json
import shlex
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Annotated, Any

import typer

from prescore.cli import console, options, text
from prescore.cli.health import describe_health
from prescore.cli.suggestions import GivenNames, suggest_labels
from prescore.client import Client
from prescore.models import BoardHead, MetricHealth, Scored, Standing

_COLUMNS = ("evaluation", "checkpoint", "value", "low", "high", "created_at", "labels")
MOST = 1000  # rows of a page


@options.expand_groups
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
    label: options.LabelFilter = None,
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
    limit: options.MostRuns = 20,
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
    names = console.split_names(metrics) or ["cider_d"]
    wanted: dict[str, Any] = {"labels": console.parse_labels(label), "signature": signature}
    with console.connect_client(connection, GivenNames(dataset, names)) as client:
        board: Any = client.history if over_time else client.leaderboard
        listing = board(dataset, names[0], metrics=names[1:], page_size=min(limit, MOST), **wanted)
        head: BoardHead = listing.head
        rows: list[Scored] = list(islice(listing, limit))
        health = None if as_json else (client.health(str(head.dataset)) or {}).get(head.metric)
        if not rows:
            _explain_none(client, dataset, head, names[0], wanted["labels"])
        columns = (*(() if over_time else ("rank", "tied")), *_COLUMNS, *names[1:])
        console.write_csv(csv_file, columns, (_build_csv_row(each, names[1:]) for each in rows))
    if as_json:
        console.print_json([_build_json(each, names[1:]) for each in rows])
    elif rows:
        options_ = ["--history"] if over_time else []
        console.print_lines([*_format_head(head, health, options_), *_format_table(rows, *names)])


def _explain_none(
    client: Client, dataset: str, head: BoardHead, metric: str, labels: Mapping[str, str]
) -> None:
    if head.none_because:
        console.print_note(f"{dataset}: {head.none_because}")
        return
    console.print_note(f"no evaluation of {dataset} has a {metric} yet")
    for sentence in suggest_labels(client, dataset, labels):
        console.print_note(sentence)


def _format_head(
    head: BoardHead, health: MetricHealth | None, options_: Sequence[str]
) -> list[str]:
    better = {True: "higher is better", False: "lower is better", None: ""}[head.higher_is_better]
    others = [f"{count} scored as {signature}" for signature, count in head.others.items()]
    facts = [
        ("on", str(head.dataset)),
        ("metric", ", ".join(filter(None, (head.metric, better)))),
        ("scored as", head.signature or ""),
        ("left out", "; ".join(others)),
        ("show them", _format_command(head, options_)),
        ("health", "" if health is None else describe_health(health)),
    ]
    return [*text.align_facts(facts), ""]


def _format_command(head: BoardHead, options_: Sequence[str]) -> str:
    """Format the command that shows the most runs of those that are left out."""
    if not head.others:
        return ""
    most = max(head.others, key=lambda signature: head.others[signature])
    words = "prescore", "leaderboard", str(head.dataset), "--metrics", head.metric, *options_
    return shlex.join([*words, "--signature", most])


def _format_table(rows: Sequence[Scored], metric: str, *more: str) -> list[str]:
    heading = ("rank", metric, "95 %", "run", "begun", "labels", *more)
    return text.align_rows([heading, *(_format_row(each, more) for each in rows)])


def _format_row(each: Scored, more: Sequence[str]) -> tuple[str, ...]:
    """Format a row of a leaderboard or a history; `=` marks a shared rank."""
    rank = f"{'=' if each.tied else ''}{each.rank}" if isinstance(each, Standing) else ""
    values = (_find_value(each, name) for name in more)
    return (
        rank.rjust(4),
        text.format_number(each.value),
        text.format_interval(each.interval),
        each.evaluation,
        text.format_moment(each.created_at),
        text.format_labels(each.labels),
        *("" if value is None else text.format_number(value) for value in values),
    )


def _find_value(each: Scored, metric: str) -> float | None:
    beside = each.scores.get(metric)
    return None if beside is None else beside.value


def _build_json(each: Scored, more: Sequence[str]) -> dict[str, Any]:
    """Build a row as the service tells it; with other metrics in `scores`, by name."""
    fields = each.model_dump(mode="json", exclude={"scores"})
    return (
        {**fields, "scores": {name: _find_value(each, name) for name in more}} if more else fields
    )


def _build_csv_row(each: Scored, more: Sequence[str]) -> tuple[object, ...]:
    low, high = each.interval or (None, None)
    labels = json.dumps(each.labels, ensure_ascii=False)
    place = (each.rank, each.tied) if isinstance(each, Standing) else ()
    facts = each.evaluation, each.checkpoint, each.value, low, high, each.created_at, labels
    return *place, *facts, *(_find_value(each, name) for name in more)
