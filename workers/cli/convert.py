"""`prescore convert`: convert published datasets to dataset bundles."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from service.contract.errors import RequestRefused
from service.contract.formats import bundles, importers
from workers.cli.check import bundle_facts
from workers.cli.console import Out, errors, show

convert = typer.Typer(help="Convert published datasets to dataset bundles.", no_args_is_help=True)


@convert.command()
def flickr8k(
    out: Out,
    tokens: Annotated[Path, typer.Option(help="Flickr8k.token.txt, or Flickr8k.token.txt.gz.")],
    train: Annotated[
        Path | None, typer.Option(help="A file with the image names for training, one per line.")
    ] = None,
    val: Annotated[
        Path | None, typer.Option(help="A file with the image names for validation.")
    ] = None,
    test: Annotated[
        Path | None, typer.Option(help="A file with the image names for testing.")
    ] = None,
) -> None:
    """Convert Flickr8k: its token file and its lists of images."""
    listings = {"train": train, "val": val, "test": test}
    splits = {split: listing for split, listing in listings.items() if listing is not None}
    if not splits:
        raise typer.BadParameter("give at least one of --train, --val, --test")
    _write(out, lambda: importers.flickr8k(tokens, splits))


@convert.command()
def karpathy(
    out: Out, source: Annotated[Path, typer.Argument(help="dataset_flickr8k.json or similar.")]
) -> None:
    """Convert Karpathy's JSON, with its splits."""
    _write(out, lambda: importers.karpathy(source))


@convert.command()
def coco(
    out: Out,
    source: Annotated[Path, typer.Argument(help="captions_val2014.json or similar.")],
    split: Annotated[str, typer.Option(help="The name of the split to write.")],
) -> None:
    """Convert COCO's caption annotations."""
    _write(out, lambda: importers.coco(source, split))


def _write(out: Path, items: Callable[[], Iterator[bundles.Item]]) -> None:
    with errors():
        try:
            bundles.write_folder(out, items())
        except FileNotFoundError as error:
            raise RequestRefused(f"expected a file, found nothing at {error.filename}") from None
        facts = bundle_facts(out)
    show(f"{out}: {json.dumps(facts['splits'])}")
