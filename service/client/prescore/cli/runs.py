"""prescore status, watch, cancel, scores"""

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from prescore.cli import asking, console, options, targets, text
from prescore.cli.follow import follow_all
from prescore.cli.nearly import Meant
from prescore.client import Client
from prescore.errors import InvalidArgument
from prescore.models import Evaluation, PregenScores, Score

Id = Annotated[str, typer.Argument(metavar="EV", help="The run's id, ev_...")]
COLUMNS = ("name", "value", "low", "high", "family", "higher_is_better", "signature")


@options.spread
def status(
    id_: Id,
    *,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Show the present state of a run: its works, its scores, its errors.

        prescore status ev_2f9c
        prescore status ev_2f9c --json | jq .scores.cider_d.value

    Exit 0: it is queued, running or has succeeded. 3: it failed, was canceled or gave
    no score.
    """
    with console.connected(connection) as client:
        _end_with(client.evaluation(id_), as_json=as_json)


@options.spread
def watch(
    target: Annotated[
        list[str],
        typer.Argument(
            metavar="EV|FILE...",
            help="Runs' ids, ev_...; with --dataset also files and folders, as for submit.",
        ),
    ],
    *,
    dataset: Annotated[
        str | None, typer.Option(help="NAME/SPLIT, on which files are scored first.")
    ] = None,
    run: options.Run,
    step_from_name: options.StepFromName = False,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Follow runs until their end, then print their scores.

    Ctrl-C ends only the watching: runs go on, and can be watched again.

        prescore watch ev_2f9c
        prescore watch ev_2f9c ev_81d0 --json
        prescore watch runs/ --dataset coco/val --label run=7 --step-from-name

    Exit 0: all have succeeded. 3: one failed, was canceled or gave no score.
    130: Ctrl-C.
    """
    with console.connected(connection, Meant(dataset or "")) as client:
        found = targets.expanded(target)
        files = [one for one in found if not targets.is_run(one)]
        if files and dataset is None:
            raise InvalidArgument(f"--dataset: expected NAME/SPLIT, on which {files[0]} is scored")
        fields = asking.plain(dataset or "", run)
        requests = asking.several(fields, files, steps=step_from_name)
        targets.check(files)
        begun = {
            one: _begun(client, one, asked) for one, asked in zip(files, requests, strict=True)
        }
        ended = follow_all(client, [begun.get(one, one) for one in found], None)
    if as_json:
        console.show_json(*ended, many=found != target or len(found) > 1)
    for evaluation in () if as_json else ended:
        console.show(text.summary(evaluation))
    for evaluation in ended:
        console.exit_as(evaluation)


def _begun(client: Client, target: str, fields: Mapping[str, Any]) -> str:
    begun = client.submit(**fields, **asking.source(client, target))
    console.say(f"submitted {begun.id}: {target}")
    return begun.id


@options.spread
def cancel(
    id_: Id,
    *,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Stop a run. Computed scores stay; works that other runs need go on.

    prescore cancel ev_2f9c
    """
    with console.connected(connection) as client:
        evaluation = client.cancel(id_)
    if as_json:
        console.show_json(evaluation)
    else:
        console.show(text.aligned([(evaluation.id, evaluation.status)]))


@options.spread
def scores(
    id_: Id,
    *,
    pregen: Annotated[
        bool, typer.Option("--pregen", help="All pre-gen scores instead of the main scores.")
    ] = False,
    csv_file: options.Table = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Print the scores that a run has so far.

        prescore scores ev_2f9c
        prescore scores ev_2f9c --pregen --csv pregen.csv

    Exit 0: printed. 3: the run failed or was canceled; the scores so far are printed.
    Or it gave no score.
    """
    with console.connected(connection) as client:
        evaluation = client.evaluation(id_)
        found = client.pregen(id_) if pregen else evaluation.scores
        if csv_file is not None:
            rows = (_csv_row(name, score) for name, score in found.items())
            console.write_csv(csv_file, COLUMNS, rows)
    if not evaluation.ended:
        console.say(f"{evaluation.id} is {evaluation.status}: more may follow")
    if as_json:
        console.show_json(PregenScores(scores=found))
    else:
        console.show(text.aligned(text.score_rows(found)))
    console.exit_as(evaluation)


def _end_with(evaluation: Evaluation, *, as_json: bool) -> None:
    if as_json:
        console.show_json(evaluation)
    else:
        console.show(text.summary(evaluation))
    console.exit_as(evaluation)


def _csv_row(name: str, score: Score) -> tuple[object, ...]:
    low, high = score.interval or (None, None)
    return name, score.value, low, high, score.family, score.higher_is_better, score.signature
