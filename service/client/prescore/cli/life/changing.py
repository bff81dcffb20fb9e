"""prescore label, delete, audit"""

from typing import Annotated

import typer

from prescore.cli import console, options, text
from prescore.cli.targets import ids_of
from prescore.models import Change

_Run = Annotated[
    str,
    typer.Argument(
        metavar="EV", help="The run's id, ev_...; or a label that it alone has, NAME=VALUE."
    ),
]


@options.spread
def label(
    id_: _Run,
    wanted: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE...", help="Labels to be set.")
    ] = None,
    *,
    remove: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A label to be removed. May repeat.")
    ] = None,
    note: Annotated[
        str | None, typer.Option(help="What people should know about it; '' removes the note.")
    ] = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Set and remove labels of a run, and its note, also after its end.

    Lists, leaderboards and `--baseline branch=main` follow at once.

        prescore label ev_2f9c branch=main --remove draft
        prescore label ev_2f9c --note "trained on half of the data"
    """
    labels: dict[str, str | None] = dict(console.labels(wanted or ()))
    labels |= dict.fromkeys(remove or ())
    if not labels and note is None:
        raise typer.BadParameter("expected NAME=VALUE, --remove NAME or --note TEXT")
    with console.connected(connection) as client:
        (id_,) = ids_of(client, id_)
        evaluation = client.change(id_, labels=labels or None, note=note)
    if as_json:
        console.show_json(evaluation)
    else:
        console.show(text.aligned([(evaluation.id, text.labels(evaluation.labels))]))


@options.spread
def delete(
    ids: Annotated[
        list[str], typer.Argument(metavar="EV...", help="Runs' ids, ev_..., that have ended.")
    ],
    *,
    connection: options.Connection,
) -> None:
    """Delete runs that have ended: lists, leaderboards and studies have them no more.

    What an unfinished run needs stays, and the error names that run.

        prescore delete ev_2f9c ev_81d0
    """
    with console.connected(connection) as client:
        for id_ in ids:
            client.delete_evaluation(id_)
            console.say(f"deleted {id_}")


@options.spread
def audit(
    *,
    action: Annotated[
        str | None, typer.Option(help="Only such changes: run.deleted, dataset.published, ...")
    ] = None,
    of: Annotated[
        str | None, typer.Option("--of", help="Only changes of this run, upload or NAME@VERSION.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="How many, the latest first.")] = 50,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Show who changed what, and when.

    prescore audit --action run.deleted
    prescore audit --of flickr8k@v2 --json
    """
    with console.connected(connection) as client:
        changes = client.audit(action=action, of=of, page_size=min(limit, 200))
        found = [change for change, _ in zip(changes, range(limit), strict=False)]
    if as_json:
        console.show_json(*found, many=True)
    else:
        console.show(text.aligned([_row(change) for change in found]))


def _row(change: Change) -> tuple[str, ...]:
    who = change.key or change.address or "the service"
    return text.moment(change.at), change.action, change.object, who
