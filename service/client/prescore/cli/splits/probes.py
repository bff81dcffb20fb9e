"""prescore probes"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore.cli import asking, console, options, text
from prescore.cli.follow import computed
from prescore.cli.nearly import Meant
from prescore.client import Client
from prescore.files import captions
from prescore.models import ProbeRow, Probes, Tokenizer
from prescore.models.probes import legend

_COLUMNS = ("probe", "name", "share", "metric", "score", "drop", "sd", "text", "note", "reason")


@options.spread
def probes(
    target: Annotated[
        str,
        typer.Argument(metavar="DATASET/SPLIT|PB", help="A split, or the id of probes, pb_..."),
    ],
    *,
    compute: options.Compute = False,
    wanted: Annotated[
        list[str] | None,
        typer.Option(
            "--probes", help="With --compute: human,frequent,rare,swap,random,single. Default: all."
        ),
    ] = None,
    metrics: options.Metrics = None,
    tokenizer: Annotated[
        Tokenizer | None, typer.Option(help="With --compute: how texts are split into words.")
    ] = None,
    captions_file: Annotated[
        Path | None,
        typer.Option("--captions", metavar="F", help="With --compute: captions beside people's."),
    ] = None,
    evaluation: Annotated[
        str | None,
        typer.Option(metavar="EV", help="With --compute: a run's captions beside people's."),
    ] = None,
    timeout: options.Timeout = None,
    csv_file: options.Table = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Show what metrics say of captions that are made wrong on purpose.

    The latest probes of a split, or with --compute new ones. Equal probes are not
    computed twice. `prescore probe` does the same here, without a service.

        prescore probes flickr8k/test
        prescore probes flickr8k/test --compute --metrics cider_d,meteor
        prescore probes flickr8k/test --compute --evaluation ev_2f9c
        prescore probes pb_7c1d --csv probes.csv

    `prescore health` sums them up.

    Exit 0: printed. 2: usage, or refused. 3: there are no probes yet, they failed or
    have not ended in time. 4: no answer from the service. 130: Ctrl-C.
    """
    asked = {
        "probes": console.names(wanted),
        "metrics": console.names(metrics),
        "tokenizer": tokenizer,
        "evaluation": evaluation,
        "captions": captions_file,
    }
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    if given and not compute:
        raise typer.BadParameter(f"--{', --'.join(given)}: only with --compute")
    is_split = not target.startswith("pb_") or "/" in target
    meant = Meant(target if is_split else "", console.names(metrics) or ())
    with console.connected(connection, meant) as client:
        if is_split:
            target = asking.whole(client, target)
        if compute:
            if captions_file is not None:
                given["captions"] = captions.read(captions_file)
            found: Probes | None = computed(
                partial(client.compute_probes, target, timeout=timeout, **given)
            )
        else:
            found = _latest(client, target) if is_split else client.probe(target)
        if found is not None and csv_file is not None:
            console.write_csv(csv_file, _COLUMNS, _csv_rows(found))
    _end(found, target, as_json=as_json)


def _latest(client: Client, target: str) -> Probes | None:
    return next(client.probes(dataset=target, status="succeeded"), None)


def _end(found: Probes | None, target: str, *, as_json: bool) -> None:
    if found is None:
        console.fail(text.not_yet(target, "probed", "probes"))
    if as_json:
        console.show_json(found)
    else:
        console.show(_lines(found))
    console.exit_as(found)


def _lines(found: Probes) -> list[str]:
    lines = text.aligned([(found.id, found.status, str(found.dataset))])
    if found.error is not None:
        lines += text.aligned([("error", found.error.detail or found.error.title)])
    lines += text.aligned([(one.code, one.detail) for one in found.warnings])
    for name, rows in found.probes.items():
        metrics = list(dict.fromkeys(metric for row in rows for metric in row.scores))
        heading = ("", "share", *metrics, "")
        shown = [_row(row, metrics) for row in rows]
        lines += [*text.aligned([(name,)]), *text.aligned([heading, *shown], indent="  ")]
    said = legend(row.name for rows in found.probes.values() for row in rows)
    return [*lines, *filter(None, [said])]


def _row(row: ProbeRow, metrics: list[str]) -> tuple[str, ...]:
    share = "" if row.share is None else f"{row.share:.1%}"
    said = "; ".join(filter(None, (row.text, row.note, row.reason)))
    return row.name, share, *(_score(row, metric) for metric in metrics), said


def _score(row: ProbeRow, metric: str) -> str:
    """The score, and how far it is below that of the first row."""
    drop: Any = row.drop.get(metric)
    below = "" if drop is None else f" ({-drop:+.3g})"
    return f"{text.number(row.scores.get(metric))}{below}"


def _csv_rows(found: Probes) -> Iterator[tuple[object, ...]]:
    for name, rows in found.probes.items():
        for row in rows:
            said = row.text, row.note, row.reason
            for metric, value in row.scores.items():
                more = row.drop.get(metric), row.sd.get(metric)
                yield name, row.name, row.share, metric, value, *more, *said
