"""prescore gate: one command for CI, from a checkpoint to an exit code."""

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore import exit_codes
from prescore.cli import asking, ci_environment, console, options, text
from prescore.cli.follow import follow
from prescore.cli.nearly import Meant
from prescore.cli.outcomes import DECISIVE, Outcome, is_decided
from prescore.cli.reports import Reports, tell_github
from prescore.client import Client, job_key
from prescore.errors import InvalidArgument, PrescoreClientError, Refused
from prescore.http import job_tokens
from prescore.models import Evaluation
from prescore.models.keys import JobKey

_UNAUTHORIZED = 401


@options.spread
def gate(
    target: options.Target = None,
    *,
    dataset: options.Split,
    brought: options.Brought,
    gate: Annotated[
        list[str],
        typer.Option(help="Such as 'cider_d >= baseline - 0.01'; may be given many times."),
    ],
    judging: options.Judging,
    scoring: options.Scoring,
    run: options.RunOptions,
    timeout: Annotated[
        float | None,
        typer.Option(min=0, help="Seconds to wait; then the run goes on in the service."),
    ] = None,
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
            --gate 'no_significant_drop(cider_d, meteor)' --junit gates.xml
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
    3: undecided, not comparable, a metric unavailable; or the run failed, was
    canceled or has not ended in time; or refused for now, as while too many runs are
    unfinished. 4: no answer from the service. 130: Ctrl-C.
    """
    asking.check_one([target] if target else (), brought)
    around = ci_environment.find(os.environ)
    reports = Reports(junit, json_out, csv)
    given = run.label or ()
    run = _labelled(run, given, around.labels)
    asking.fields(dataset, gate, scoring, judging, run)  # what is wrong is told before all else
    try:
        job = None if connection.key_file else job_key(connection.url, connection.patience)
        run = _labelled(run, given, around.labels | (job.labels if job else {}))
        fields = asking.fields(dataset, gate, scoring, judging, run)
        with console.opened(connection, job.key if job else None) as client:
            fields |= asking.named_metrics(client, scoring)
            fields["dataset"] = asking.whole(client, dataset)
            scored = (
                asking.source(client, target, brought.units)
                if target
                else asking.brought(client, brought)
            )
            request = {**fields, **scored}
            with console.suggesting(client, Meant(dataset, (), gate)):
                evaluation = _submitted(client, request, _key(once_for, around, request))
            followed = _followed(client, evaluation.id, timeout, connection, job)
            outcome = Outcome.of(followed)
    except PrescoreClientError as error:
        outcome = Outcome.without(gate, error)
    _advise(outcome, judging.baseline, run.label or ())
    _end(outcome, reports, as_json=as_json)


def _labelled(
    run: options.RunOptions, given: Sequence[str], around: Mapping[str, str]
) -> options.RunOptions:
    """The run with the labels of its CI job; those that are given count where they differ."""
    return replace(run, label=[*(f"{name}={value}" for name, value in around.items()), *given])


def _advise(outcome: Outcome, wanted: str | None, labels: Sequence[str]) -> None:
    """Say what to do about gates that found no baseline."""
    found = [gate for gate in outcome.gates if gate.no_baseline]
    for gate in found:
        if gate.passed_unheld:
            console.say(f"warning: passed with no baseline: {gate.gate}: {gate.detail}")
    if not found:
        return
    if wanted and "=" in wanted and wanted not in labels:
        console.say(f"runs that are to be the baseline need --label {wanted}")
    if not any(gate.verdict in DECISIVE for gate in found):
        console.say("a first run passes with --if-no-baseline pass")


def _followed(
    client: Client,
    id_: str,
    timeout: float | None,
    connection: options.Connection,
    job: JobKey | None,
) -> Evaluation:
    """The run at its end. If it takes longer than the key of a job is valid, it is waited for with
    another one, where the CI system gives tokens on demand.
    """
    until = None if timeout is None else time.monotonic() + timeout
    try:
        return follow(client, id_, timeout)
    except Refused as error:
        if error.status != _UNAUTHORIZED or job is None or job.expires_at > datetime.now(UTC):
            raise
        if not job_tokens.is_on_demand(os.environ):
            error.add_note(
                f"the key of this job was valid until {job.expires_at:%H:%M} UTC, and its token is "
                f"exchanged once; {id_} goes on: give a key by PRESCORE_KEY for longer runs"
            )
            raise
    another = job_key(connection.url, connection.patience)
    left = None if until is None else max(0.0, until - time.monotonic())
    with console.opened(connection, another.key if another else None) as renewed:
        return _followed(renewed, id_, left, connection, another)


def _submitted(client: Client, request: dict[str, Any], key: str | None) -> Evaluation:
    """The run of this job; a new run if that one has ended without a verdict."""
    evaluation = client.submit(**request, idempotency_key=key)
    if key is not None and evaluation.ended and not is_decided(evaluation):
        console.say(f"{evaluation.id} of this job ended without a verdict: submitting a new run")
        evaluation = client.submit(**request)
    if evaluation.was_there:
        console.say(f"{evaluation.id} was there already")
    else:
        console.say(f"submitted {evaluation.id}")
    console.say(evaluation.url)
    return evaluation


def _key(
    once_for: str | None, around: ci_environment.Surroundings, request: dict[str, Any]
) -> str | None:
    """The idempotency key, made from the CI job and the request; None outside a CI job."""
    job = once_for or " ".join(filter(None, (around.run, around.commit)))
    if not job:
        return None
    told = json.dumps([job, request], sort_keys=True)
    return f"gate-{hashlib.sha256(told.encode('ascii')).hexdigest()}"


def _end(outcome: Outcome, reports: Reports, *, as_json: bool) -> None:
    code = outcome.code
    if outcome.problem:
        console.say_all(outcome.problem)
    if outcome.evaluation is not None:
        _show(outcome.evaluation, as_json=as_json)
    try:
        tell_github(outcome, os.environ)
        reports.write(outcome)
    except InvalidArgument as error:
        console.say_all(str(error))
        code = code or exit_codes.REFUSED
    raise typer.Exit(code)


def _show(evaluation: Evaluation, *, as_json: bool) -> None:
    if as_json:
        console.show_json(evaluation)
    else:
        console.show(text.judged(evaluation))
