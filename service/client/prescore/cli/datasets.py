"""prescore datasets add, fetch, images, list, delete"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from prescore.cli import console, options, text
from prescore.models import Dataset
from prescore.plain_text import format_count

datasets = typer.Typer(
    help="Add datasets to the service, list and delete those it has.", no_args_is_help=True
)
_NewName = Annotated[
    str, typer.Argument(metavar="NAME", help="The dataset's name, by which runs refer to it.")
]


@datasets.command()
@options.expand_groups
def add(
    name: _NewName,
    bundle: Annotated[Path, typer.Argument(metavar="BUNDLE", help="A folder or a tar file.")],
    *,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Add a dataset bundle as a new version of NAME; equal bytes make no new version.

    A bundle has captions.jsonl and, if wanted, features.safetensors and images/.
    Other files in the folder are not sent.

        prescore datasets add flickr8k flickr8k/
        prescore datasets add flickr8k flickr8k.tar --json
    """
    with (
        console.connect_client(connection) as client,
        console.show_upload(bundle.name) as progress,
    ):
        dataset = client.add_dataset(name, bundle, progress)
    console.print_answer(dataset, _format_dataset, as_json=as_json)


@datasets.command()
@options.expand_groups
def fetch(
    name: _NewName,
    where: Annotated[
        str,
        typer.Argument(
            metavar="URL|-", help="Where the tar is, by https; - reads a URL that is a secret."
        ),
    ],
    *,
    digest: Annotated[
        str, typer.Option(help="The tar's SHA-256, sha256:...; another file is refused.")
    ],
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Let the service fetch a dataset's tar from a URL, as a new version of NAME.

    Only where its operator allows that. The command waits until it is stored.

        prescore datasets fetch coco https://example.com/c.tar --digest sha256:2f9c...
        prescore datasets fetch coco - --digest sha256:2f9c... < url.txt
    """
    url = sys.stdin.readline().strip() if where == "-" else where
    with console.connect_client(connection) as client:
        dataset = client.fetch_dataset(name, url, digest)
    console.print_answer(dataset, _format_dataset, as_json=as_json)


@datasets.command()
@options.expand_groups
def images(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A dataset that the service has.")],
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The pictures, under their images' names.")
    ] = None,
    *,
    show: Annotated[
        bool | None,
        typer.Option(
            "--show/--hide",
            help="Let everybody who reaches the service look at the pictures, or nobody.",
            show_default=False,
        ),
    ] = None,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """Add the pictures in a folder to a dataset's images, as a new version of NAME.

    It has the captions of the latest version, and shares its leaderboards. Features stay
    with the versions that have them: a checkpoint is scored on those of its encoder.
    Nobody can look at a version's pictures unless it is shown.

        prescore datasets images flickr8k Flicker8k_Dataset/ --show
        prescore datasets images flickr8k@v2 --hide
    """
    if folder is None and show is None:
        raise typer.BadParameter("expected a folder of pictures DIR, --show or --hide")
    with console.connect_client(connection) as client:
        if folder is not None:
            with console.show_upload(folder.name) as progress:
                dataset = client.add_pictures(name, folder, progress)
        if show is not None:
            of = name if folder is None else str(dataset)
            dataset = client.show_pictures(of, shown=show)
    console.print_answer(dataset, _format_dataset, as_json=as_json)


@datasets.command(name="list")
@options.expand_groups
def list_(
    *,
    as_json: options.AsJson = False,
    connection: options.Connection,
) -> None:
    """List the datasets that the service has.

    prescore datasets list
    prescore datasets list --json | jq -r '.[].name'
    """
    with console.connect_client(connection) as client:
        listed = list(client.datasets())
    console.print_answers(listed, _format_datasets, as_json=as_json)


@datasets.command()
@options.expand_groups
def delete(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A version, NAME@VERSION, or all of NAME.")
    ],
    *,
    connection: options.Connection,
) -> None:
    """Delete a version of a dataset, or all of a name, on which there are no runs.

    prescore datasets delete flickr8k@v2
    """
    with console.connect_client(connection) as client:
        client.delete_dataset(name)
    console.print_note(f"deleted {name}")


def _format_dataset(dataset: Dataset) -> list[str]:
    return _format_datasets([dataset])


def _format_datasets(datasets: Sequence[Dataset]) -> list[str]:
    return text.align_rows(
        (str(each), _format_splits(each), _format_features(each), each.digest) for each in datasets
    )


def _format_splits(dataset: Dataset) -> str:
    return ", ".join(
        f"{name} {format_count(split.images, 'image')} "
        f"{format_count(split.references, 'reference')}"
        + (f" {format_count(split.pictures, 'picture')}" if split.pictures else "")
        for name, split in dataset.splits.items()
    )


def _format_features(dataset: Dataset) -> str:
    shown = ", pictures shown" if dataset.pictures_shown else ""
    if dataset.features is None:
        pictured = any(split.pictures for split in dataset.splits.values())
        return f"{'captions and pictures' if pictured else 'captions only'}{shown}"
    features, encoder = dataset.features, dataset.features.encoder
    places = "" if features.inputs == "features" else f"{features.inputs} {features.places} x "
    name = encoder.name if encoder else "an encoder"
    return f"features {places}{features.size} of {name}{shown}"
