"""prescore status, watch, cancel, scores"""

from collections.abc import Mapping
from itertools import islice
from typing import Annotated, Any

import typer

from prescore.cli import console, model_files, options, run_summaries, submissions, text
from prescore.cli.progress import follow_runs
from prescore.cli.run_ids import RunId, find_run_id, is_run_id_or_label
from prescore.cli.suggestions import GivenNames
from prescore.client import Client
from prescore.errors import InvalidArgument
from prescore.models import Evaluation, PregenScores, Score

MOST_LOOKED_AT = 200  # of the latest runs with the same labels
COLUMNS = ("name", "value", "low", "high", "family", "higher_is_better", "signature")


@options.expand_groups
def status(
    id_: RunId,
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
    with console.connect_client(connection) as client:
        id_ = find_run_id(client, id_)
        evaluation = client.evaluation(id_)
        console.print_answer(evaluation, run_summaries.format_summary, as_json=as_json)
        console.exit_by_status(evaluation)


@options.expand_groups
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
    with console.connect_client(connection, GivenNames(dataset or "")) as client:
        targets = model_files.expand_targets(target)
        files = [one for one in targets if not is_run_id_or_label(one)]
        if files and dataset is None:
            raise InvalidArgument(f"--dataset: expected NAME/SPLIT, on which {files[0]} is scored")
        model_files.check_files(files)
        submitted = {}
        if files:
            split = submissions.complete_split(client, dataset or "")
            fields = submissions.build_plain_fields(split, run)
            requests = submissions.build_requests(fields, files, steps=step_from_name)
            submitted = {
                file: _find_or_submit(client, file, request)
                for file, request in zip(files, requests, strict=True)
            }
        ids = [submitted.get(one) or find_run_id(client, one) for one in targets]
        runs = follow_runs(client, ids, None)
    is_list = targets != target or len(targets) > 1
    console.print_each(runs, run_summaries.format_summary, as_json=as_json, is_list=is_list)
    for evaluation in runs:
        console.exit_by_status(evaluation)


def _find_or_submit(client: Client, target: str, fields: Mapping[str, Any]) -> str:
    """Find the latest run of a file that was submitted with the same labels, or submit it."""
    request = {**fields, **submissions.build_source(client, target, options.OutputOptions())}
    known = _find_run(client, request)
    if known is None:
        return submissions.submit_run(client, target, request).id
    when = text.format_moment(known.created_at)
    console.print_note(
        f"{known.id} of {when} scores {target} already, and is followed; a new run: prescore submit"
    )
    return known.id


def _find_run(client: Client, request: Mapping[str, Any]) -> Evaluation | None:
    """Find a run of a checkpoint: captions are sent with each request and have no name."""
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


@options.expand_groups
def cancel(
    id_: RunId,
    *,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Stop a run. Computed scores stay; tasks that other runs need go on.

    prescore cancel ev_2f9c
    """
    with console.connect_client(connection) as client:
        id_ = find_run_id(client, id_)
        before = client.evaluation(id_)
        evaluation = client.cancel(id_)
    if before.ended:
        console.print_note(f"{id_} had ended already ({before.status}): nothing was stopped")
    console.print_answer(
        evaluation, lambda run: text.align_rows([(run.id, run.status)]), as_json=as_json
    )


@options.expand_groups
def scores(
    id_: RunId,
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
    `bits_per_byte` is -sum of log2 p / number of bytes of the captions in UTF-8.

        prescore scores ev_2f9c
        prescore scores ev_2f9c --pregen --csv pregen.csv

    Exit 0: printed. 3: the run failed or was canceled; the scores so far are printed.
    Or it gave no score.
    """
    with console.connect_client(connection) as client:
        id_ = find_run_id(client, id_)
        evaluation = client.evaluation(id_)
        scores = client.pregen(id_) if pregen else evaluation.scores
        rows = (_build_csv_row(name, score) for name, score in scores.items())
        console.write_csv(csv_file, COLUMNS, rows)
    if not evaluation.ended:
        console.print_note(f"{evaluation.id} is {evaluation.status}: more may follow")
    lines = text.align_rows(run_summaries.build_score_rows(scores))
    console.print_answer(PregenScores(scores=scores), lambda _: lines, as_json=as_json)
    console.exit_by_status(evaluation)


def _build_csv_row(name: str, score: Score) -> tuple[object, ...]:
    low, high = score.interval or (None, None)
    return name, score.value, low, high, score.family, score.higher_is_better, score.signature
