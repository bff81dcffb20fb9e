"""prescore submit"""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore import captions
from prescore.cli import console, text
from prescore.cli.follow import follow
from prescore.client import Client
from prescore.models import Evaluation, Idf, Tokenizer


def submit(
    target: Annotated[
        str,
        typer.Argument(
            metavar="CHECKPOINT|CAPTIONS.json",
            help="A .safetensors file, the sha256:... of one that the service has, or a JSON list "
            'of {"image" or "image_id", "caption"}.',
        ),
    ],
    dataset: Annotated[str, typer.Option(help="NAME/SPLIT or NAME@VERSION/SPLIT.")],
    pregen: Annotated[
        list[str] | None,
        typer.Option(help="all, none, or names by commas. Default: all."),
    ] = None,
    postgen: Annotated[
        list[str] | None,
        typer.Option(help="none, or names by commas. Default: below."),
    ] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="Width of the beam; 1 is greedy.")] = None,
    min_words: Annotated[int | None, typer.Option(min=0, help="Of a caption.")] = None,
    max_words: Annotated[int | None, typer.Option(min=1, help="Of a caption.")] = None,
    unk: Annotated[bool | None, typer.Option(help="May captions hold the unknown word?")] = None,
    tokenizer: Annotated[Tokenizer | None, typer.Option(help="Of captions and references.")] = None,
    subset: Annotated[bool, typer.Option("--subset", help="Captions for a part will do.")] = False,
    idf: Annotated[
        Idf | None, typer.Option(help="Of CIDEr: from the whole split, or the answered part.")
    ] = None,
    label: Annotated[list[str] | None, typer.Option(help="NAME=VALUE, to find it by.")] = None,
    deadline: Annotated[int | None, typer.Option(min=1, help="Seconds that it may take.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Until its end; shows how it goes.")] = False,
    timeout: Annotated[
        float | None, typer.Option(min=0, help="Seconds to --wait; the run goes on after them.")
    ] = None,
    as_json: console.AsJson = False,
    url: console.Url = None,
    key_file: console.KeyFile = None,
    patience: console.Patience = console.PATIENCE,
) -> None:
    """Score a checkpoint, or captions that it wrote, on one split of a dataset.

    Prints the run's id at once, or with --wait its scores at the end. What the
    service has is not uploaded again, and no score is computed twice.

        prescore submit best.safetensors --dataset flickr8k/test --wait
        prescore submit best.safetensors --dataset flickr8k@v1/test --postgen none
        prescore submit results.json --dataset coco/val --postgen cider_d,spice
        EV=$(prescore submit best.safetensors --dataset coco/val --label run=7)

    By default the scores are bleu, rouge_l, cider_d and meteor, and all the
    pre-gen ones for a checkpoint.

    Exit 0: submitted, or succeeded. 1: refused. 2: usage. 3: with --wait, the run
    failed, was canceled or has not ended in time. 4: no answer of the service.
    """
    if "/" not in dataset:
        raise typer.BadParameter(f"--dataset: expected NAME/SPLIT, found {dataset!r:.100}")
    if timeout is not None and not wait:
        raise typer.BadParameter("--timeout goes with --wait")
    decoding = {"beam": beam, "min_words": min_words, "max_words": max_words, "unk": unk}
    fields = {
        "pregen": _asked(pregen),
        "postgen": _asked(postgen),
        "decoding": {name: value for name, value in decoding.items() if value is not None} or None,
        "tokenizer": tokenizer,
        "subset": subset or None,
        "idf": idf,
        "labels": console.labels(label or []) or None,
        "deadline": deadline,
    }
    with console.connected(url, key_file, patience) as client:
        evaluation = client.submit(dataset, **_source(client, target), **fields)
        if wait:
            console.say(f"submitted {evaluation.id}")
            evaluation = follow(client, evaluation.id, timeout)
        _show(evaluation, wait=wait, as_json=as_json)
    if wait and evaluation.status != "succeeded":
        raise typer.Exit(console.FAILED)


def _source(client: Client, target: str) -> dict[str, Any]:
    if target.startswith("sha256:"):
        return {"checkpoint": target}
    path = Path(target)
    if path.suffix.lower() == ".json":
        return {"captions": captions.read(path)}
    with console.upload_shown(path.name) as progress:
        return {"checkpoint": client.upload_checkpoint(path, progress)}


def _show(evaluation: Evaluation, *, wait: bool, as_json: bool) -> None:
    if as_json:
        console.show_json(evaluation)
    elif wait:
        console.show(text.summary(evaluation))
    else:
        console.show([console.plain(evaluation.id)])
        console.say(f"watch it: prescore watch {evaluation.id}")


def _asked(given: Sequence[str] | None) -> str | list[str] | None:
    if given is None:
        return None
    names = [name.strip() for text_ in given for name in text_.split(",") if name.strip()]
    return {("all",): "all", ("none",): []}.get(tuple(names), names)
