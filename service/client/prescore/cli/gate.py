"""prescore gate: one command for CI, from a checkpoint to an exit code."""

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore import exit_codes
from prescore.cli import console, options, submissions
from prescore.cli.caption_drops import read_drops
from prescore.cli.ci_environment import CiJob, find_ci_job
from prescore.cli.gate_outcomes import DECISIVE, CountedAs, GateOutcome
from prescore.cli.gate_reports import GateReports, report_to_github
from prescore.cli.progress import follow_run
from prescore.cli.run_summaries import format_verdict_summary
from prescore.cli.suggestions import GivenNames
from prescore.client import Client, exchange_job_key
from prescore.errors import InvalidArgument, PrescoreClientError, Refused
from prescore.http import job_tokens
from prescore.models import CaptionDrops, Evaluation
from prescore.models.keys import JobKey

_UNAUTHORIZED = 401


@options.expand_groups
def gate(
    target: options.Target = None,
    *,
    dataset: options.Split,
    outputs: options.OutputOptions,
    gate: Annotated[
        list[str],
        typer.Option(help="Such as 'cider_d >= baseline - 0.01'; may be given many times."),
    ],
    judging: options.GateOptions,
    scores: options.ScoreOptions,
    run: options.RunOptions,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds to wait; then the run goes on in the service."),
    ] = None,
    undecided: Annotated[
        CountedAs,
        typer.Option(help="What an undecided gate of a run that succeeded counts as."),
    ] = "undecided",
    once_for: Annotated[
        str | None,
        typer.Option(
            help="Equal requests with the same text share one run. Default: the CI job's id."
        ),
    ] = None,
    junit: Annotated[
        Path | None, options.file_to_write("Write JUnit XML, a test case for each gate.")
    ] = None,
    json_out: Annotated[
        Path | None, options.file_to_write("Write the JSON of --json to a file.")
    ] = None,
    csv: Annotated[Path | None, options.file_to_write("Write the gates as CSV.")] = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Pass or fail a CI job by the scores of a checkpoint, of captions or of columns.

    Submits it, waits, and prints a verdict for each gate. Metrics that gates name
    are computed in addition to bleu, rouge_l, cider_d and meteor.

        prescore gate best.safetensors --dataset coco/val --gate 'cider_d >= 0.9'
        prescore gate best.safetensors --dataset coco/val --baseline branch=main
            --gate 'cider_d >= baseline - 0.01' --gate 'perplexity <= 15.5'
        prescore gate results.json --dataset coco/val --baseline best
            --gate 'not_worse(cider_d, meteor, 2 %)' --junit gates.xml
        prescore gate --columns model.columns.safetensors --captions results.json
            --dataset coco/val --gate 'perplexity <= 15.5' --gate 'cider_d >= 0.9'

    The first run of a branch has no baseline: --if-no-baseline pass lets it pass. By a
    label or as the best, only runs whose gates passed, or that have none, are found. If
    the run that is to be the baseline has not ended: exit 3, try again later.

    In GitHub, GitLab and Jenkins, branch and commit become labels. Without PRESCORE_KEY,
    a job of GitHub (permissions: id-token: write) or GitLab (PRESCORE_ID_TOKEN) gets a
    key for its own token, if the service trusts its project. A job that runs
    twice for a commit uses the same run; if that run ended without a verdict, a new
    one is submitted. GitHub shows a summary and annotations.

    Ctrl-C ends only the waiting: the run goes on, and a repeated job uses it again.
    To stop the run: prescore cancel.

    Exit 0: every gate passed. 1: a gate failed. 2: usage, or refused.
    3: undecided (unless --undecided counts it as pass or fail), not comparable, a metric
    unavailable; or the run failed, was canceled or has not ended in time; or refused for
    now, as while too many runs are unfinished. 4: no answer from the service. 130: Ctrl-C.
    """
    submissions.check_source([target] if target else (), outputs)
    ci_job = find_ci_job(os.environ)
    reports = GateReports(junit, json_out, csv)
    given = run.label or ()
    run = _add_labels(run, given, ci_job.labels)
    submissions.build_fields(dataset, gate, scores, judging, run)  # refuses wrong options first
    try:
        key = None if connection.key_file else exchange_job_key(connection.url, connection.patience)
        run = _add_labels(run, given, ci_job.labels | (key.labels if key else {}))
        fields = submissions.build_fields(dataset, gate, scores, judging, run)
        with console.open_client(connection, key.key if key else None) as client:
            fields |= submissions.build_metric_fields(client, scores)
            fields["dataset"] = submissions.complete_split(client, dataset)
            request = {**fields, **submissions.build_source(client, target or None, outputs)}
            with console.add_suggestions(client, GivenNames(dataset, (), gate)):
                evaluation = _submit(client, request, _build_key(once_for, ci_job, request))
            ended, drops = _follow(client, evaluation.id, timeout, connection, key)
            outcome = GateOutcome.of(ended, undecided, drops)
    except PrescoreClientError as error:
        outcome = GateOutcome.without(gate, error)
    _advise(outcome, judging.baseline, run.label or ())
    _report(outcome, reports, as_json=as_json)


def _add_labels(
    run: options.RunOptions, given: Sequence[str], of_job: Mapping[str, str]
) -> options.RunOptions:
    """Add the labels of the CI job; those that are given count where they differ."""
    return replace(run, label=[*(f"{name}={value}" for name, value in of_job.items()), *given])


def _advise(outcome: GateOutcome, baseline: str | None, labels: Sequence[str]) -> None:
    """Say what to do about gates that have no baseline."""
    gates = [gate for gate in outcome.gates if gate.no_baseline]
    for gate in gates:
        if gate.passed_unheld:
            console.print_note(f"warning: passed with no baseline: {gate.gate}: {gate.detail}")
    if not gates:
        return
    if baseline and "=" in baseline and baseline not in labels:
        console.print_note(f"runs that are to be the baseline need --label {baseline}")
    if not any(gate.verdict in DECISIVE for gate in gates):
        console.print_note("a first run passes with --if-no-baseline pass")


def _follow(
    client: Client,
    id_: str,
    timeout: float | None,
    connection: options.Connection,
    key: JobKey | None,
) -> tuple[Evaluation, CaptionDrops | None]:
    """Wait for a run's end, and read which images fell most. If it takes longer than the key of a
    job is valid, another one is used, where the CI system gives tokens on demand.
    """
    until = None if timeout is None else time.monotonic() + timeout
    try:
        ended = follow_run(client, id_, timeout)
        return ended, read_drops(client, ended)
    except Refused as error:
        if error.status != _UNAUTHORIZED or key is None or key.expires_at > datetime.now(UTC):
            raise
        if not job_tokens.is_on_demand(os.environ):
            error.add_note(
                f"the key of this job was valid until {key.expires_at:%H:%M} UTC, and its token is "
                f"exchanged once; {id_} goes on: give a key by PRESCORE_KEY for longer runs"
            )
            raise
    another = exchange_job_key(connection.url, connection.patience)
    left = None if until is None else max(0.0, until - time.monotonic())
    with console.open_client(connection, another.key if another else None) as renewed:
        return _follow(renewed, id_, left, connection, another)


def _submit(client: Client, request: dict[str, Any], key: str | None) -> Evaluation:
    """Submit or find the run of this job; a new run if that one has ended without a verdict."""
    evaluation = client.submit(**request, idempotency_key=key)
    if key is not None and evaluation.ended and evaluation.verdict not in DECISIVE:
        console.print_note(
            f"{evaluation.id} of this job ended without a verdict: submitting a new run"
        )
        evaluation = client.submit(**request)
    if evaluation.was_there:
        console.print_note(f"{evaluation.id} was there already")
    else:
        console.print_note(f"submitted {evaluation.id}")
    console.print_note(evaluation.url)
    return evaluation


def _build_key(once_for: str | None, ci_job: CiJob, request: dict[str, Any]) -> str | None:
    """Build the idempotency key from the CI job and the request; None outside a CI job."""
    job = once_for or " ".join(filter(None, (ci_job.run, ci_job.commit)))
    if not job:
        return None
    content = json.dumps([job, request], sort_keys=True)
    return f"gate-{hashlib.sha256(content.encode('ascii')).hexdigest()}"


def _report(outcome: GateOutcome, reports: GateReports, *, as_json: bool) -> None:
    """Print the outcome, write its reports, and end the command."""
    code = outcome.code
    if outcome.problem:
        console.print_notes(outcome.problem)
    if outcome.evaluation is not None:
        format_run = partial(format_verdict_summary, drops=outcome.drops)
        console.print_answer(outcome.evaluation, format_run, as_json=as_json)
    try:
        report_to_github(outcome, os.environ)
        reports.write(outcome)
    except InvalidArgument as error:
        console.print_notes(str(error))
        code = code or exit_codes.REFUSED
    raise typer.Exit(code)
