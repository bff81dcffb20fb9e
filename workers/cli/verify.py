"""`prescore verify`: compare a checkpoint with numbers of its owner's own code."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workers.cli.console import AsJson, report_errors

if TYPE_CHECKING:
    from workers.offline.verify import VerificationResult

_SHOWN = 3  # examples


def verify(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint (.safetensors).")],
    logp: Annotated[
        Path,
        typer.Option(
            metavar="EXPECTED.json",
            help='A JSON list of {"words": […], "logp": […], "features": […] or "image": …}: logp '
            "has the natural log-probability of each word and of the end.",
        ),
    ],
    dataset: Annotated[
        Path | None, typer.Option(help="A bundle with the features of the images that are named.")
    ] = None,
    tolerance: Annotated[
        float, typer.Option(min=0, help="How far two log-probabilities may be apart.")
    ] = 1e-3,
    as_json: AsJson = False,
) -> None:
    """Compare a checkpoint's log-probabilities with those of your own code.

    Do this once for each way of converting models: a wrong order of gates, or features that
    are normalised here and were not in training, give scores that look right and are not.
    Where the two part, it says what else would agree.

        prescore verify model.safetensors --logp expected.json
        prescore verify model.safetensors --logp expected.json --dataset flickr8k/

    Exit 0: they agree. Exit 1: they do not. Exit 2: a file is wrong.
    Needs no service.
    """
    from workers.inference import checkpoints
    from workers.offline import verify as task

    with report_errors():
        given = task.read_examples(logp, dataset)
        found = task.verify_checkpoint(
            checkpoints.read_checkpoint(checkpoint), given, dataset, tolerance
        )
    agree = found.furthest <= tolerance
    if as_json:
        document = {"agree": agree, "furthest": found.furthest, "remedy": found.remedy}
        typer.echo(json.dumps({**document, "logp": [each.tolist() for each in found.ours]}))
    else:
        _show(found, agree=agree)
    raise typer.Exit(0 if agree else 1)


def _show(found: "VerificationResult", *, agree: bool) -> None:
    count = sum(map(len, found.words))
    apart = f"{count} log-probabilities are at most {found.furthest:.2g} apart"
    if agree:
        typer.echo(f"They agree: {apart}.")
        return
    for words, ours, theirs in list(zip(found.words, found.ours, found.theirs, strict=True))[
        :_SHOWN
    ]:
        typer.echo(f"{'word':20} {'here':>10} {'yours':>10}")
        for word, here, there in zip(words, ours, theirs, strict=True):
            typer.echo(f"{word!r:20.20} {here:10.4f} {there:10.4f}")
    typer.echo(f"They do not agree: {apart}.")
    typer.echo(
        f"They would with {found.remedy}."
        if found.remedy
        else "No other order of gates or rows, and no other `normalize`, agrees: compare the "
        "equations in the guide, deploy/guide/file-formats.md."
    )
