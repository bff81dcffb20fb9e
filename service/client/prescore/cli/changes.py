"""prescore label, delete, audit"""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated

import typer

from prescore.cli import console, options, text
from prescore.cli.run_ids import RunId, find_run_id
from prescore.models import Change, Evaluation


@options.expand_groups
def label(
    id_: RunId,
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
    labels: dict[str, str | None] = dict(console.parse_labels(wanted))
    labels |= dict.fromkeys(remove or ())
    if not labels and note is None:
        raise typer.BadParameter("expected NAME=VALUE, --remove NAME or --note TEXT")
    with console.connect_client(connection) as client:
        id_ = find_run_id(client, id_)
        evaluation = client.change(id_, labels=labels or None, note=note)
    console.print_answer(evaluation, _format_labels, as_json=as_json)


@options.expand_groups
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
    with console.connect_client(connection) as client:
        for id_ in ids:
            client.delete_evaluation(id_)
            console.print_note(f"deleted {id_}")


@options.expand_groups
def audit(
    *,
    action: Annotated[
        str | None, typer.Option(help="Only such changes: run.deleted, dataset.published, ...")
    ] = None,
    of: Annotated[
        str | None, typer.Option("--of", help="Only changes of this run, upload or NAME@VERSION.")
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, help="Number of rows, the latest first.")
    ] = 50,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Show who changed what, and when.

    prescore audit --action run.deleted
    prescore audit --of flickr8k@v2 --json
    """
    with console.connect_client(connection) as client:
        changes = client.audit(action=action, of=of, page_size=min(limit, 200))
        shown = list(islice(changes, limit))
    console.print_answers(shown, _format_changes, as_json=as_json)


def _format_labels(evaluation: Evaluation) -> list[str]:
    return text.align_rows([(evaluation.id, text.format_labels(evaluation.labels))])


def _format_changes(changes: Sequence[Change]) -> list[str]:
    return text.align_rows(
        (
            *(text.format_moment(change.at), change.action, change.object),
            change.key or change.address or "the service",
        )
        for change in changes
    )
