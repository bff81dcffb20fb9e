"""The request body that `prescore submit` and `prescore gate` build from their options."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from prescore.cli import console, nearly, targets, text
from prescore.cli.options import Brought, Judging, RunOptions, Scoring
from prescore.client import Client
from prescore.errors import InvalidArgument
from prescore.files import captions
from prescore.models import Evaluation
from prescore.plain_text import quoted

LONGEST_LABEL = 500  # characters
SPLITS_SHOWN = 20


def fields(
    dataset: str, gates: Sequence[str] | None, scoring: Scoring, judging: Judging, run: RunOptions
) -> dict[str, Any]:
    """The request's fields, except the checkpoint or captions; None: the service's default."""
    if scoring.metrics and (scoring.pregen or scoring.postgen):
        raise typer.BadParameter("--metrics: expected it without --pregen and --postgen")
    for name in console.names(scoring.metrics) or ():
        if name in ("all", "none"):
            raise typer.BadParameter(
                f"--metrics: expected names of metrics, found {name!r}; "
                "--pregen takes all or none, --postgen takes none"
            )
    return {
        "dataset": dataset,
        "pregen": _names(scoring.pregen),
        "postgen": _names(scoring.postgen),
        "precision": scoring.precision,
        "decoding": _decoding(scoring) or None,
        "tokenizer": scoring.tokenizer,
        "subset": scoring.subset or None,
        "idf": scoring.idf,
        "gates": gates or None,
        "baseline": judging.baseline,
        "if_no_baseline": judging.if_no_baseline,
        "trust": judging.trust or None,
        "until": judging.until,
        "labels": console.labels(run.label or ()) or None,
        "deadline": run.deadline,
    }


def named_metrics(client: Client, scoring: Scoring) -> dict[str, list[str]]:
    """The fields `pregen` and `postgen` of the names in --metrics; empty without that option."""
    names = console.names(scoring.metrics)
    if names is None:
        return {}
    pregen, postgen = nearly.split_metrics(client, names)
    return {"pregen": pregen, "postgen": postgen}


def plain(dataset: str, run: RunOptions) -> dict[str, Any]:
    """The fields of a request that leaves the scores to the service."""
    labels = console.labels(run.label or ()) or None
    return {"dataset": dataset, "labels": labels, "deadline": run.deadline}


def several(
    fields: Mapping[str, Any], found: Sequence[str], *, steps: bool
) -> list[dict[str, Any]]:
    """The fields of a request for each target; with `steps` each has the number in its name as the
    label `step`. A run without any label would have no name that people know: it has its file's.
    """
    labels = fields.get("labels") or {}
    if steps:
        marks = [{"step": targets.step(one)} for one in found]
    else:
        marks = [{} if labels else _named(one) for one in targets.names(found)]
    return [{**fields, "labels": {**labels, **mark} or None} for mark in marks]


def _named(file: str) -> dict[str, str]:
    shown = file.encode("utf-8", "replace").decode()  # a name on a disk may be in another code
    return {"file": shown[-LONGEST_LABEL:]} if file else {}


def whole(client: Client, dataset: str) -> str:
    """NAME/SPLIT: of a name alone, with the dataset's only split."""
    if "/" in dataset:
        return dataset
    splits = sorted(client.dataset(dataset).splits)
    if len(splits) != 1:
        shown = ", ".join(map(quoted, splits[:SPLITS_SHOWN]))
        more = f" and {len(splits) - SPLITS_SHOWN} more" if len(splits) > SPLITS_SHOWN else ""
        raise InvalidArgument(
            f"expected NAME/SPLIT, found {dataset!r:.100}, which has the splits {shown}{more}"
        )
    console.say(f"on {dataset}/{splits[0]}, its only split")
    return f"{dataset}/{splits[0]}"


def begun(client: Client, target: str, request: Mapping[str, Any]) -> Evaluation:
    found = client.submit(**request)
    label = text.labels(request.get("labels") or {})
    console.say(f"submitted {found.id}: {target}{f', labelled {label}' if label else ''}")
    console.say(found.url)
    return found


def source(client: Client, target: str, units: str | None = None) -> dict[str, Any]:
    """The request's `captions` or `checkpoint`; a checkpoint's file is uploaded first."""
    if target.startswith("sha256:"):
        return {"checkpoint": target, "units": units}
    path = Path(target)
    if captions.looks_like_captions(path):
        return {"captions": captions.read(path)}
    with console.upload_shown(path.name) as progress:
        return {"checkpoint": client.upload_checkpoint(path, progress), "units": units}


def check_one(given: Sequence[str], brought: Brought) -> None:
    """Raise unless a command names one place from which its scores come."""
    named = brought.columns is not None or brought.captions is not None
    if named == bool(given):
        found = "both" if named else "neither"
        raise typer.BadParameter(
            "expected CHECKPOINT or CAPTIONS, or --columns FILE with or without --captions FILE; "
            f"found {found}"
        )
    if brought.units is not None and brought.captions is not None and brought.columns is None:
        raise typer.BadParameter("--units is for pre-gen scores: captions alone have none")


def brought(client: Client, given: Brought) -> dict[str, Any]:
    """The request's `columns`, a file of which is uploaded first, and its `captions`."""
    said = {} if given.captions is None else {"captions": captions.read(given.captions)}
    if given.columns is None or given.columns.startswith("sha256:"):
        return {"columns": given.columns, "units": given.units, **said}
    path = Path(given.columns)
    with console.upload_shown(path.name) as progress:
        return {"columns": client.upload_columns(path, progress), "units": given.units, **said}


def tokens(top: int | None, *, entropy: bool) -> dict[str, Any]:
    """What to keep of each reference token in addition."""
    asked = {"top": top, "entropy": entropy or None}
    found = {name: value for name, value in asked.items() if value is not None}
    return {"tokens": found} if found else {}


def _decoding(scoring: Scoring) -> dict[str, Any]:
    names = ("beam", "min_words", "max_words", "unk", "length_power")
    return {name: value for name in names if (value := getattr(scoring, name)) is not None}


def _names(given: Sequence[str] | None) -> str | list[str] | None:
    if given is None:
        return None
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    if names == ["all"]:
        return "all"
    return [] if names == ["none"] else names
