"""What submit and gate ask alike: what is scored, on which split, how, and under which labels."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore.cli import console
from prescore.client import Client
from prescore.files import captions
from prescore.models import Idf, Tokenizer, Until

Target = Annotated[
    str,
    typer.Argument(
        metavar="CHECKPOINT|CAPTIONS.json",
        help="A .safetensors file, the sha256:... of one that the service has, or a JSON list "
        'of {"image" or "image_id", "caption"}.',
    ),
]
Split = Annotated[str, typer.Option("--dataset", help="NAME/SPLIT or NAME@VERSION/SPLIT.")]
Pregen = Annotated[
    list[str] | None, typer.Option(help="all, none, or names by commas. Default: all.")
]
Postgen = Annotated[
    list[str] | None, typer.Option(help="none, or names by commas. Default: below.")
]
Beam = Annotated[int | None, typer.Option(min=1, help="Width of the beam; 1 is greedy.")]
MinWords = Annotated[int | None, typer.Option(min=0, help="Of a caption.")]
MaxWords = Annotated[int | None, typer.Option(min=1, help="Of a caption.")]
Unk = Annotated[bool | None, typer.Option(help="May captions hold the unknown word?")]
OfWords = Annotated[Tokenizer | None, typer.Option(help="Of captions and references.")]
Subset = Annotated[bool, typer.Option("--subset", help="Captions for a part will do.")]
IdfOf = Annotated[
    Idf | None, typer.Option(help="Of CIDEr: from the whole split, or the answered part.")
]
Labels = Annotated[list[str] | None, typer.Option("--label", help="NAME=VALUE, to find it by.")]
Deadline = Annotated[int | None, typer.Option(min=1, help="Seconds that it may take.")]
Baseline = Annotated[
    str | None,
    typer.Option(help="What `baseline` in gates means: NAME=VALUE (a label), ev_... or best."),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(help="A metric that may gate though a constant sentence beats people in it."),
]
UntilWhen = Annotated[
    Until | None, typer.Option(help="verdict: end as soon as all gates are decided.")
]


def fields(
    dataset: str,
    *,
    pregen: Sequence[str] | None,
    postgen: Sequence[str] | None,
    beam: int | None,
    min_words: int | None,
    max_words: int | None,
    unk: bool | None,
    label: Sequence[str] | None,
    subset: bool,
    **others: Any,
) -> dict[str, Any]:
    """The request but for its source; what was not given is left to the service."""
    if "/" not in dataset:
        raise typer.BadParameter(f"--dataset: expected NAME/SPLIT, found {dataset!r:.100}")
    decoding = {"beam": beam, "min_words": min_words, "max_words": max_words, "unk": unk}
    return {
        "dataset": dataset,
        "pregen": _names(pregen),
        "postgen": _names(postgen),
        "decoding": {name: value for name, value in decoding.items() if value is not None} or None,
        "subset": subset or None,
        "labels": console.labels(label or ()) or None,
        **others,
    }


def source(client: Client, target: str) -> dict[str, Any]:
    """Captions as they are, a checkpoint by its digest once the service has it."""
    if target.startswith("sha256:"):
        return {"checkpoint": target}
    path = Path(target)
    if path.suffix.lower() == ".json":
        return {"captions": captions.read(path)}
    with console.upload_shown(path.name) as progress:
        return {"checkpoint": client.upload_checkpoint(path, progress)}


def _names(given: Sequence[str] | None) -> str | list[str] | None:
    if given is None:
        return None
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    if names == ["all"]:
        return "all"
    return [] if names == ["none"] else names
