"""Ids of runs, as arguments of commands: an id, or a label that one run alone has."""

import shlex
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from prescore.cli import console, text
from prescore.cli.suggestions import suggest_labels
from prescore.client import Client
from prescore.errors import InvalidArgument
from prescore.plain_text import quoted

MOST_SHOWN = 5  # runs with a label
RunId = Annotated[
    str,
    typer.Argument(
        metavar="EV", help="The run's id, ev_...; or a label that it alone has, NAME=VALUE."
    ),
]


def is_run_id(target: str) -> bool:
    return target.startswith("ev_") and not Path(target).exists()


def is_run_id_or_label(target: str) -> bool:
    is_label = "=" in target and "/" not in target and not Path(target).exists()
    return is_label or is_run_id(target)


def find_run_id(client: Client, given: str) -> str:
    (found,) = find_run_ids(client, given)
    return found


def find_run_ids(client: Client, *given: str) -> list[str]:
    """Find the ids of runs; a label stands for the only run that has it. Raises, with the commands
    to give, for files and digests in the place of runs.
    """
    others = [one for one in given if one.startswith("sha256:") or Path(one).exists()]
    if others:
        commands = [
            f"  prescore submit {shlex.quote(one)} --dataset NAME/SPLIT --wait" for one in others
        ]
        lines = [
            f"expected a run's id, ev_..., found {quoted(others[0])!s:.200}",
            "Submit first what has no id yet, and name the id that is printed:",
            *map(quoted, commands),
        ]
        raise InvalidArgument("\n".join(lines))
    return [_find_labelled_run(client, one) if "=" in one else one for one in given]


def _find_labelled_run(client: Client, label: str) -> str:
    labels = console.parse_labels([label])
    runs = list(islice(client.evaluations(labels=labels, page_size=MOST_SHOWN), MOST_SHOWN))
    if not runs:
        for sentence in suggest_labels(client, "", labels):
            console.print_note(sentence)
        raise InvalidArgument(f"no run has the label {label!r:.100}; `prescore list` shows labels")
    if len(runs) > 1:
        rows = [
            (
                *(run.id, run.status, str(run.dataset), text.format_moment(run.created_at)),
                text.format_labels(run.labels),
            )
            for run in runs
        ]
        lines = [
            f"expected a run's id, or a label that one run has; several have {label!r:.100}:",
            *text.align_rows(rows, indent="  "),
            quoted(f"All of them: prescore list --label {shlex.quote(label)}"),
        ]
        raise InvalidArgument("\n".join(lines))
    console.print_note(f"{label} is {runs[0].id}, {runs[0].dataset}")
    return runs[0].id
