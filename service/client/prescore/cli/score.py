"""prescore score"""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore.cli import (
    console,
    local_datasets,
    options,
    run_summaries,
    submissions,
    suggestions,
    text,
)
from prescore.cli.progress import follow_run
from prescore.cli.suggestions import GivenNames
from prescore.client import Client
from prescore.errors import InvalidArgument
from prescore.files import captions
from prescore.models import Evaluation, RunTask
from prescore.models.choices import Idf
from prescore.plain_text import format_count, quoted

_INCOMPLETE = 3  # a metric has no score
_SHOWN = 20  # warnings
_PAGE = 1000
_ASIDE = "nneval"  # what `all` does not stand for


@options.expand_groups
def score(
    target: options.OneTarget,
    *,
    dataset: options.LocalSplit,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            help="Names, separated by commas or given one by one; or `all` that are available.",
            show_default=options.USUAL,
        ),
    ] = None,
    tokenizer: options.WordTokenizer = None,
    subset: options.Subset = False,
    idf: Annotated[
        Idf | None,
        typer.Option(
            help="CIDEr's document frequencies: of the whole split, or of images with captions."
        ),
    ] = None,
    as_json: options.AsJson = False,
    json_file: Annotated[
        Path | None, options.file_to_write("Write the JSON to a file.", "--json-out")
    ] = None,
    csv_file: Annotated[
        Path | None,
        options.file_to_write("Write every caption with its own scores to a CSV file.", "--csv"),
    ] = None,
    connection: options.Connection,
) -> None:
    """Score captions, or a checkpoint, and print the scores.

    Where DATASET is a folder or a tar, or no service is named and none answers,
    the service runs in this process (--here). It keeps its results: the same is
    not computed twice. METEOR's program starts anew each time.

        prescore score results.json --dataset flickr8k/
        prescore score results.json --dataset coco.tar/val --metrics cider_d,spice
        prescore score best.safetensors --dataset flickr8k/ --metrics cider_d
        prescore score results.json --dataset flickr8k@v1/test --json

    Metrics: bleu (bleu_1 to bleu_4), rouge_l, cider_d, cider, meteor, spice,
    spider, wmd, wmd_unit, chair, bertscore, refscore, nneval (nneval@DIGEST: with
    a certain model), accord, accord_large, variety; of a checkpoint, pre-gen
    metrics too. Some need files that `prescore assets` adds; `all` leaves out
    those whose files are not here, and nneval, which has to be asked for.

    Exit 0: every metric has a score. 2: usage, or refused. 3: some have no score.
    """
    names = console.split_names(metrics) or options.USUAL.split(",")
    connection = local_datasets.choose_connection(connection, dataset)
    given_names = GivenNames(local_datasets.find_name(connection, dataset), names)
    with console.connect_client(connection, given_names) as client:
        items = _read_captions(target)
        split = local_datasets.provide_split(client, connection, dataset, whole=items is None)
        missing: Mapping[str, str] = {}
        if "all" in names:
            names, missing = _list_every_metric(client, names)
        run = client.submit(
            split,
            tokenizer=tokenizer,
            subset=subset or None,
            idf=idf,
            **_build_request(client, target, items, names),
        )
        run = follow_run(client, run.id)
        document = run.model_dump(mode="json")
        if json_file is not None:
            console.write_file(json_file, json.dumps(document).encode())
        if csv_file is not None:
            _write_csv(csv_file, client, run)
    _print_oddities(run, missing, is_written=as_json or json_file is not None)
    if as_json:
        console.print_json(document)
    else:
        console.print_lines(_format_scores(run, items))
    if run.status != "succeeded" or _list_failed_tasks(run):
        raise typer.Exit(_INCOMPLETE)


def _read_captions(target: str) -> list[dict[str, str]] | None:
    """Read the captions in a file; None for a checkpoint."""
    path = Path(target)
    return captions.read_captions(path) if captions.looks_like_captions(path) else None


def _build_request(
    client: Client, target: str, items: list[dict[str, Any]] | None, names: Sequence[str]
) -> dict[str, Any]:
    """Build the source of the scores, and the names of the metrics by their field."""
    usual = not set(names) - set(options.USUAL.split(","))
    pregen, postgen = ([], [*names]) if usual else suggestions.split_metrics(client, names)
    if items is None:
        source = submissions.build_source(client, target, options.OutputOptions())
        return {**source, "pregen": pregen, "postgen": postgen}
    if pregen:
        raise InvalidArgument(f"{pregen[0]} is a pre-gen metric: it needs a checkpoint")
    return {"captions": items, "postgen": postgen}


def _list_every_metric(client: Client, names: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """List the metrics that `all` stands for and those that are named beside it, and why others
    are left out.
    """
    metrics = [metric for metric in client.metrics() if metric.family == "postgen"]
    missing = {
        metric.name: metric.reason or "" for metric in metrics if metric.status != "available"
    }
    missing |= {
        metric.name: "it agrees with people less than CIDEr-D; ask for it by name"
        for metric in metrics
        if metric.name == _ASIDE and _ASIDE not in names
    }
    named = [name for name in names if name != "all"]
    every = [metric.name for metric in metrics if metric.name not in missing]
    return list(dict.fromkeys([*every, *named])), missing


def _print_oddities(run: Evaluation, missing: Mapping[str, str], *, is_written: bool) -> None:
    for reason in dict.fromkeys(missing.values()):
        names = ", ".join(name for name in missing if missing[name] == reason)
        console.print_note(f"left out: {names}: {reason}")
    rows = run_summaries.list_warnings(run)
    for code, image, detail in rows[:_SHOWN]:
        console.print_note(f"warning: {code}:{f' {image}:' if image else ''} {detail}")
    if len(rows) > _SHOWN:
        console.print_note(
            f"warning: {len(rows) - _SHOWN} more{'' if is_written else ', see --json'}"
        )
    reasons = {
        task.name: f"{task.status}: {{}}: {task.error.detail if task.error else ''}"
        for task in reversed(_list_failed_tasks(run))
    }
    for reason in dict.fromkeys(reasons.values()):
        console.print_note(
            reason.format(", ".join(name for name in reasons if reasons[name] == reason))
        )


def _list_failed_tasks(run: Evaluation) -> list[RunTask]:
    return [task for task in run.tasks if task.status in ("failed", "unavailable")]


def _format_scores(run: Evaluation, items: Sequence[object] | None) -> Iterator[str]:
    count = f", {format_count(len(items), 'caption')}" if items is not None else ""
    has_intervals = any(one.interval for one in run.scores.values())
    brackets = ", 95 % intervals in brackets" * has_intervals
    yield quoted(f"{run_summaries.describe_split(run)}{count}{brackets}")
    rows = [
        (*run_summaries.build_score_rows({name: one})[0][:3], one.signature or "")
        for name, one in run.scores.items()
    ]
    yield from text.align_rows(rows)


def _write_csv(path: Path, client: Client, run: Evaluation) -> None:
    rows = list(client.captions(run.id, page_size=_PAGE))
    metrics = list(rows[0].scores) if rows else []
    heading = ("image", "caption", *metrics)
    table = ((row.image, row.caption, *map(row.scores.get, metrics)) for row in rows)
    console.write_csv(path, heading, table)
