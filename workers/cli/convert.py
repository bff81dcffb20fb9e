"""`prescore convert`: make a dataset bundle or a checkpoint of other programs' files."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prescore.cli.options import file_to_write
from service.contract import settings
from service.contract.errors import InvalidCheckpoint, RequestRefused, UnusableCheckpoint
from service.contract.formats import bundles, importers
from service.contract.formats.architectures import RecurrentConfig
from service.contract.formats.bundles import FeaturesHeader
from service.contract.formats.bundles.features import check_features_fit
from service.contract.formats.checkpoint_header import FeatureEncoder
from workers.cli.console import (
    Out,
    OutFirst,
    print_lines,
    print_note,
    report_errors,
    show_progress_steps,
)

if TYPE_CHECKING:
    from service.contract.formats.map_files import AnyMap
    from workers.conversion.layers import Arrays

convert = typer.Typer(
    help="Convert published datasets to dataset bundles, and models to checkpoints.",
    no_args_is_help=True,
)


Images = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="A folder with the picture of each image, under its name; they are copied.",
    ),
]


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
    images: Images = None,
) -> None:
    """Convert Flickr8k: its token file and its lists of images."""
    listings = {"train": train, "val": val, "test": test}
    splits = {split: listing for split, listing in listings.items() if listing is not None}
    if not splits:
        raise typer.BadParameter("give at least one of --train, --val, --test")
    _write(out, lambda: importers.read_flickr8k(tokens, splits), images)


@convert.command()
def karpathy(
    out: OutFirst,
    source: Annotated[Path, typer.Argument(help="dataset_flickr8k.json or similar.")],
    images: Images = None,
) -> None:
    """Convert Karpathy's JSON, with its splits."""
    _write(out, lambda: importers.read_karpathy(source), images)


@convert.command()
def coco(
    out: OutFirst,
    source: Annotated[Path, typer.Argument(help="captions_val2014.json or similar.")],
    split: Annotated[str, typer.Option(help="The name of the split to write.")],
    images: Images = None,
) -> None:
    """Convert COCO's caption annotations. Other splits that the folder has are kept."""
    _write_split(out, split, lambda: importers.read_coco(source, split), images)


@convert.command()
def references(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            help='pycocoevalcap\'s dictionary {"1.jpg": ["a dog", "a brown dog"]}, a JSON list of '
            '{"image" or "image_id", "references"}, JSON Lines, or a table with the columns '
            "image,caption and a row for each reference.",
        ),
    ],
    out: Out,
    split: Annotated[str, typer.Option(help="The name of the split to write.")] = "test",
    images: Images = None,
) -> None:
    """Convert references of your own, with pictures if there are some. Other splits that the
    folder has are kept.

    prescore convert references gts.json mine/ --split test
    prescore convert references captions.csv mine/ --images photos/
    """
    from workers.offline import references as brought

    _write_split(out, split, lambda: brought.read_references_file(source, split), images)
    if unused := brought.list_unused_columns(source):
        print_note(f"warning: {source}: columns that are not used: {unused}")


@convert.command()
def checkpoint(
    model: Annotated[
        Path,
        typer.Argument(help="Its state dict: what torch.save has written, or a safetensors file."),
    ],
    vocabulary: Annotated[
        Path, typer.Option(help="JSON: a list of words by id, or an object with words and ids.")
    ],
    map_file: Annotated[
        Path | None,
        typer.Option("--map", help="Which layers are which. Without it, a map is proposed."),
    ] = None,
    out: Annotated[Path | None, file_to_write("The checkpoint to write.")] = None,
    dataset: Annotated[
        Path | None,
        typer.Option(help="A bundle with the image features that the model was trained on."),
    ] = None,
) -> None:
    """Convert a model of torch's layers to a checkpoint. What torch.save has written is opened in a
    sandbox.

    First without --map: a map is printed, for you to look at. Then with it:

      prescore convert checkpoint model.pt --vocabulary words.json > names.toml

      prescore convert checkpoint model.pt --vocabulary words.json --map names.toml
      --dataset flickr8k/ --out captioner.safetensors

    Afterwards `prescore verify` compares it with numbers of your own code.
    """
    from service.contract.formats import map_files, state_dicts
    from workers.conversion import canonical_checkpoints, proposal

    with report_errors(), show_progress_steps() as steps:
        steps.begin("the tensors")
        arrays, left_out = _opened(model)
        if left_out:
            print_note(f"left out, since they are no tensors of weights: {', '.join(left_out)}")
        words = state_dicts.parse_words(_text(vocabulary, state_dicts.MAX_VOCABULARY_BYTES))
        if map_file is None:
            typer.echo(proposal.propose_map(arrays, words), nl=False)
            print_note("Proposed. Look at each line, write it to a file, and give that as --map.")
            return
        given = map_files.parse_map(_text(map_file, map_files.MAX_MAP_BYTES))
        if out is None:
            raise typer.BadParameter("expected the checkpoint to write, found none: give --out")
        steps.begin("the checkpoint")
        features = None if dataset is None else bundles.read_features_header(dataset)
        of_features = _encoder(given, features)
        description, tensors = canonical_checkpoints.convert_tensors(
            arrays, words, given, of_features
        )
        if features is not None:
            config = description.config
            check_features_fit(features, config.feature_size, config.inputs)
        header = canonical_checkpoints.write_canonical(out, description, tensors)
        remark = dataset and canonical_checkpoints.remark_on_unknown_words(dataset, description)
        if remark:
            print_note(f"warning: {remark}")
    cell = f"{description.config.cell}, " if isinstance(description.config, RecurrentConfig) else ""
    print_lines(
        f"{out}: {given.architecture}, {cell}"
        f"{len(description.vocabulary):,} words, {header.parameters:,} parameters"
    )


@convert.command()
def encoder(
    model: Annotated[
        Path,
        typer.Argument(help="Its state dict: what torch.save has written, or a safetensors file."),
    ],
    out: Annotated[Path, file_to_write("The encoder to write.")],
    name: Annotated[str, typer.Option(help="What checkpoints call it.")] = "mobilenet_v2",
    preprocessing: Annotated[
        Path | None,
        typer.Option(help="JSON: what becomes of a picture first. Else what the library does."),
    ] = None,
) -> None:
    """Convert a MobileNetV2 of transformers or torchvision to an encoder of pictures.

    prescore convert encoder model.safetensors --out mobilenet.safetensors

    prescore assets add image-encoder mobilenet.safetensors
    """
    from service.contract.formats import encoder_header
    from service.contract.formats.digests import compute_digest
    from workers.conversion import encoders

    with report_errors(), show_progress_steps() as steps:
        steps.begin("the tensors")
        arrays, _ = _opened(model, encoders.SOURCE)
        given = None if preprocessing is None else _text(preprocessing, encoder_header.MAX_TEXT)
        asked = None if given is None else encoder_header.parse_encoder_preprocessing(given)
        header = encoders.write_image_encoder(out, arrays, name, asked)
    print_lines(
        f"{out}: {header.identity(compute_digest(out).removeprefix('sha256:'))}, size {header.size}"
    )


def _text(path: Path, most: int) -> str:
    if not path.is_file():
        raise RequestRefused(f"expected a file, found nothing at {path}")
    if path.stat().st_size > most:
        raise RequestRefused(f"{path}: at most {most:,} bytes are accepted")
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RequestRefused(f"{path}: expected UTF-8, found byte {error.start}") from None


def _opened(model: Path, wanted: str | None = None) -> "tuple[Arrays, Sequence[str]]":
    """The tensors of a file. One that has none is refused, as any other wrong file."""
    from workers.conversion import foreign_files
    from workers.conversion.foreign_files import ConversionLimits

    try:
        return foreign_files.read_tensors(
            model, ConversionLimits.of(settings.load_settings()), wanted
        )
    except UnusableCheckpoint as error:
        raise InvalidCheckpoint(error.detail) from None


def _encoder(given: "AnyMap", features: FeaturesHeader | None) -> FeatureEncoder:
    if features is not None:
        return features.encoder
    if given.encoder is None:
        raise RequestRefused(
            "expected --dataset with the bundle whose features the model was trained on, or "
            "[encoder] with `name` and `digest` in the map"
        )
    return given.encoder


def _write_split(
    out: Path, split: str, items: Callable[[], Iterator[bundles.BundleItem]], images: Path | None
) -> None:
    from workers.offline import bundle_folders

    with report_errors():
        there = bundle_folders.find_other_splits(out, split)
    _write(out, items, images, there.others)
    if remark := there.remark(split):
        print_note(remark)


def _write(
    out: Path,
    items: Callable[[], Iterator[bundles.BundleItem]],
    images: Path | None = None,
    others: Sequence[bundles.BundleItem] = (),
) -> None:
    """`others`: of splits that the folder has, and keeps."""
    from workers.offline import bundle_folders, file_facts

    with report_errors():
        try:
            pictured = [] if images is None else [item.image for item in items()]
            if images is not None:
                bundle_folders.check_pictures(images, pictured)
            bundles.write_bundle_folder(out, bundle_folders.join_splits(items(), others))
            if images is not None:
                bundle_folders.copy_pictures(images, out, pictured)
        except FileNotFoundError as error:
            raise RequestRefused(f"expected a file, found nothing at {error.filename}") from None
        held = file_facts.describe_bundle(out)
    print_lines(f"{out}: {json.dumps(held['splits'])}")
