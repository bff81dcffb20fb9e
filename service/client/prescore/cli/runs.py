"""prescore status, watch, cancel, scores"""

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any

import typer

from prescore.cli import asking, console, options, targets, text
from prescore.cli.follow import follow_all
from prescore.cli.nearly import Meant
from prescore.cli.targets import ids_of
from prescore.client import Client
from prescore.errors import InvalidArgument
from prescore.models import Evaluation, PregenScores, Score

Id = Annotated[
    str,
    typer.Argument(
        metavar="EV", help="The run's id, ev_...; or a label that it alone has, NAME=VALUE."
    ),
]
MOST_LOOKED_AT = 200  # of the latest runs with the same labels
COLUMNS = ("name", "value", "low", "high", "family", "higher_is_better", "signature")


@options.spread
def status(
    id_: Id,
    *,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Show the present state of a run: its tasks, its scores, its errors.

        prescore status ev_2f9c
        prescore status ev_2f9c --json | jq .scores.cider_d.value

    Exit 0: it is queued, running or has succeeded. 3: it failed, was canceled or gave
    no score.
    """
    with console.connected(connection) as client:
        (id_,) = ids_of(client, id_)
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
    run: options.RunOptions,
    step_from_name: options.StepFromName = False,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Follow runs until their end, then print their scores.

    A checkpoint that was submitted with the same labels is not submitted again: its run
    is followed. Ctrl-C ends only the watching: runs go on, and can be
    watched again.

        prescore watch ev_2f9c
        prescore watch ev_2f9c ev_81d0 --json
        prescore watch runs/ --dataset coco/val --label run=7 --step-from-name

    Exit 0: all have succeeded. 3: one failed, was canceled or gave no score.
    130: Ctrl-C.
    """
    with console.connected(connection, Meant(dataset or "")) as client:
        found = targets.expanded(target)
        files = [one for one in found if not targets.is_run_or_label(one)]
        if files and dataset is None:
            raise InvalidArgument(f"--dataset: expected NAME/SPLIT, on which {files[0]} is scored")
        targets.check(files)
        begun = {}
        if files:
            fields = asking.plain(asking.whole(client, dataset or ""), run)
            requests = asking.several(fields, files, steps=step_from_name)
            begun = {
                one: _of_file(client, one, asked)
                for one, asked in zip(files, requests, strict=True)
            }
        ids = [begun.get(one) or ids_of(client, one)[0] for one in found]
        ended = follow_all(client, ids, None)
    if as_json:
        console.show_json(*ended, many=found != target or len(found) > 1)
    for evaluation in () if as_json else ended:
        console.show(text.summary(evaluation))
    for evaluation in ended:
        console.exit_as(evaluation)


def _of_file(client: Client, target: str, fields: Mapping[str, Any]) -> str:
    """The run of a file: the latest that was submitted with the same labels, or a new one."""
    request = {**fields, **asking.source(client, target)}
    known = _known(client, request)
    if known is None:
        return asking.begun(client, target, request).id
    when = text.moment(known.created_at)
    console.say(
        f"{known.id} of {when} scores {target} already, and is followed; a new run: prescore submit"
    )
    return known.id


def _known(client: Client, request: Mapping[str, Any]) -> Evaluation | None:
    """Of a checkpoint: captions are sent with each request and have no name."""
    digest, dataset = request.get("checkpoint"), request["dataset"]
    if digest is None or request["deadline"] is not None:
        return None
    latest = client.dataset(dataset.partition("/")[0]).version
    labels = request["labels"] or {}
    runs = client.evaluations(dataset=dataset, labels=labels, page_size=MOST_LOOKED_AT)
    same = (
        run
        for run in islice(runs, MOST_LOOKED_AT)
        if (run.checkpoint, run.labels, run.dataset.version) == (digest, labels, latest)
        and run.status not in ("failed", "canceled")
    )
    return next(same, None)


@options.spread
def cancel(
    id_: Id,
    *,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Stop a run. Computed scores stay; tasks that other runs need go on.

    prescore cancel ev_2f9c
    """
    with console.connected(connection) as client:
        (id_,) = ids_of(client, id_)
        before = client.evaluation(id_)
        evaluation = client.cancel(id_)
    if before.ended:
        console.say(f"{id_} had ended already ({before.status}): nothing was stopped")
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

    `perplexity` is exp(-mean over captions of (sum of log p / number of tokens of the caption)).
    `corpus_perplexity` is exp(-sum of log p / number of tokens), of all captions together.

        prescore scores ev_2f9c
        prescore scores ev_2f9c --pregen --csv pregen.csv

    Exit 0: printed. 3: the run failed or was canceled; the scores so far are printed.
    Or it gave no score.
    """
    with console.connected(connection) as client:
        (id_,) = ids_of(client, id_)
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
