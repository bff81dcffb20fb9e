"""Requests of `prescore submit`, `gate` and `watch`: their fields, from options and files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from prescore.cli import console, model_files, suggestions, text
from prescore.cli.options import DECODING, GateOptions, OutputOptions, RunOptions, ScoreOptions
from prescore.client import Client
from prescore.errors import InvalidArgument
from prescore.files import captions
from prescore.models import Evaluation
from prescore.plain_text import quoted

LONGEST_LABEL = 500  # characters
SPLITS_SHOWN = 20


def build_fields(
    dataset: str,
    gates: Sequence[str] | None,
    scores: ScoreOptions,
    judging: GateOptions,
    run: RunOptions,
) -> dict[str, Any]:
    """Build a request's fields, except the checkpoint or captions; None: the service's default."""
    if scores.metrics and (scores.pregen or scores.postgen):
        raise typer.BadParameter("--metrics: expected it without --pregen and --postgen")
    for name in console.split_names(scores.metrics) or ():
        if name in ("all", "none"):
            raise typer.BadParameter(
                f"--metrics: expected names of metrics, found {name!r}; "
                "--pregen takes all or none, --postgen takes none"
            )
    options = {**vars(scores), **vars(judging)}  # most are called as their fields are
    del options["metrics"]
    return {
        **build_plain_fields(dataset, run),
        **{
            name: None if value is False or value == [] else value
            for name, value in options.items()
            if name not in DECODING
        },
        "pregen": _parse_metrics(scores.pregen),
        "postgen": _parse_metrics(scores.postgen),
        "decoding": scores.decoding or None,
        "gates": gates or None,
    }


def build_plain_fields(dataset: str, run: RunOptions) -> dict[str, Any]:
    """Build the fields of a request that leaves the scores to the service."""
    labels = console.parse_labels(run.label) or None
    return {"dataset": dataset, "labels": labels, "deadline": run.deadline}


def build_metric_fields(client: Client, scores: ScoreOptions) -> dict[str, list[str]]:
    """Build `pregen` and `postgen` of the names in --metrics; nothing without that option."""
    names = console.split_names(scores.metrics)
    if names is None:
        return {}
    pregen, postgen = suggestions.split_metrics(client, names)
    return {"pregen": pregen, "postgen": postgen}


def build_requests(
    fields: Mapping[str, Any], files: Sequence[str], *, steps: bool
) -> list[dict[str, Any]]:
    """Build the fields of a request for each file; with `steps` each has the number in its name as
    the label `step`. A run without any label is labelled by its file's name, so that people can
    tell it from others.
    """
    labels = fields.get("labels") or {}
    if steps:
        marks = [{"step": model_files.read_step(file)} for file in files]
    else:
        marks = [{} if labels else _label_file(name) for name in model_files.name_files(files)]
    return [{**fields, "labels": {**labels, **mark} or None} for mark in marks]


def _label_file(name: str) -> dict[str, str]:
    shown = name.encode("utf-8", "replace").decode()  # a name on a disk may be in another code
    return {"file": shown[-LONGEST_LABEL:]} if name else {}


def complete_split(client: Client, dataset: str) -> str:
    """Complete a name to NAME/SPLIT, where the dataset has one split."""
    if "/" in dataset:
        return dataset
    splits = sorted(client.dataset(dataset).splits)
    if len(splits) != 1:
        shown = ", ".join(map(quoted, splits[:SPLITS_SHOWN]))
        more = f" and {len(splits) - SPLITS_SHOWN} more" if len(splits) > SPLITS_SHOWN else ""
        raise InvalidArgument(
            f"expected NAME/SPLIT, found {dataset!r:.100}, which has the splits {shown}{more}"
        )
    console.print_note(f"on {dataset}/{splits[0]}, its only split")
    return f"{dataset}/{splits[0]}"


def submit_run(client: Client, target: str, request: Mapping[str, Any]) -> Evaluation:
    run = client.submit(**request)
    label = text.format_labels(request.get("labels") or {})
    console.print_note(f"submitted {run.id}: {target}{f', labelled {label}' if label else ''}")
    console.print_note(run.url)
    return run


def check_source(targets: Sequence[str], outputs: OutputOptions) -> None:
    """Raise unless a command names one source of its scores."""
    named = outputs.columns is not None or outputs.captions is not None
    if named == bool(targets):
        found = "both" if named else "neither"
        raise typer.BadParameter(
            "expected CHECKPOINT or CAPTIONS, or --columns FILE with or without --captions FILE; "
            f"found {found}"
        )
    if outputs.units is not None and outputs.captions is not None and outputs.columns is None:
        raise typer.BadParameter("--units is for pre-gen scores: captions alone have none")


def build_source(client: Client, target: str | None, outputs: OutputOptions) -> dict[str, Any]:
    """Build the request's `checkpoint`, `captions` or `columns`; a file is uploaded first."""
    if target is None:
        return _build_output_fields(client, outputs)
    if target.startswith("sha256:"):
        return {"checkpoint": target, "units": outputs.units}
    path = Path(target)
    if captions.looks_like_captions(path):
        return {"captions": captions.read_captions(path)}
    with console.show_upload(path.name) as progress:
        return {"checkpoint": client.upload_checkpoint(path, progress), "units": outputs.units}


def _build_output_fields(client: Client, outputs: OutputOptions) -> dict[str, Any]:
    """Build the request's `columns`, a file of which is uploaded first, and its `captions`."""
    file, digest = outputs.captions, outputs.columns
    fields = {} if file is None else {"captions": captions.read_captions(file)}
    if digest is not None and not digest.startswith("sha256:"):
        path = Path(digest)
        with console.show_upload(path.name) as progress:
            digest = client.upload_columns(path, progress)
    return {"columns": digest, "units": outputs.units, **fields}


def build_token_fields(top: int | None, *, entropy: bool) -> dict[str, Any]:
    """Build the field of what to keep of each reference token in addition."""
    fields = {"top": top, "entropy": entropy or None}
    kept = {name: value for name, value in fields.items() if value is not None}
    return {"tokens": kept} if kept else {}


def _parse_metrics(values: Sequence[str] | None) -> str | list[str] | None:
    if values is None:
        return None
    names = [name.strip() for value in values for name in value.split(",") if name.strip()]
    if names == ["all"]:
        return "all"
    return [] if names == ["none"] else names
