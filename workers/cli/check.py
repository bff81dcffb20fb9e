"""`prescore check`: check a checkpoint, a dataset bundle, captions, or columns."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore import exit_codes, foreign
from prescore.files import captions
from prescore.files.models import is_package
from service.contract import settings
from service.contract.assets import AssetFolders
from service.contract.errors import (
    RequestRefused,
    SandboxUnavailable,
    UnusableCheckpoint,
    UnusableDataset,
)
from service.contract.formats import columns_header, columns_values, model_formats
from workers.cli.console import (
    AsJson,
    KeyFile,
    Url,
    print_json,
    print_lines,
    print_note,
    report_errors,
    show_progress_steps,
)
from workers.offline import file_facts
from workers.offline.sources import DatasetSource, find_source
from workers.progress import Progress

Begin = Callable[[str], Progress]
_OF = "columns of"
_GZIP = b"\x1f\x8b"
_UNPACK = "unpack it by `gunzip`; a bundle's tar is made by `tar -cf bundle.tar -C FOLDER .`"


def check(
    path: Annotated[
        Path,
        typer.Argument(
            help="A checkpoint or columns (.safetensors), a package of a state dict, what "
            "transformers or PEFT has saved, or an ONNX bundle (a folder, a tar or a zip), a "
            "dataset bundle, or captions."
        ),
    ],
    dataset: Annotated[
        str | None,
        typer.Option(
            metavar="DATASET[/SPLIT]",
            help="With captions or columns: a local bundle or a dataset of a service; are they of "
            "its images?",
        ),
    ] = None,
    subset: Annotated[
        bool, typer.Option("--subset", help="With --dataset: captions for a part of the split.")
    ] = False,
    as_json: AsJson = False,
    url: Url = None,
    key_file: KeyFile = None,
) -> None:
    """Check a checkpoint, a dataset bundle, captions or columns: show what it holds, or what is
    wrong.

    Captions are a JSON list, pycocoevalcap's dictionary, JSON Lines or CSV.
    Columns are what `prescore.Recorder` writes.

    Pictures of a bundle are decoded, and foreign models opened, in the sandbox, as a
    service's worker does. Needs no GPU, and no service unless --dataset names a
    dataset of one.

    Exit 0: a service would take it. 2: it would not, or could not score it. 3: this
    machine has no sandbox, and what is opened in it alone is not checked.

        prescore check model.safetensors
        prescore check flickr8k/
        prescore check results.json --dataset flickr8k/test
    """
    with report_errors(), _refusing(), show_progress_steps() as steps:
        told = _facts(path, steps.begin)
        if dataset is not None and told is not None and "tokens" not in told:
            raise RequestRefused("--dataset is for captions and columns")
        source = None
        if dataset is not None:
            places = AssetFolders.of(settings.load_settings())
            source = find_source(dataset, places, url, key_file)
        if told is None:
            told = file_facts.describe_captions(path, source, subset=subset)
        elif source is not None:
            told |= _fitting(path, source)
    if as_json:
        print_json(told)
    else:
        if not told.get(_OF, True):
            told[_OF] = "a model that the file does not name"
        print_lines(
            *(f"{name + ':':18} {line}" for name, one in told.items() for line in _lines(one))
        )
    if file_facts.UNSEEN in told:
        raise typer.Exit(exit_codes.FAILED)


@contextmanager
def _refusing() -> Iterator[None]:
    """Refuse what a service would take, but a run on it would fail."""
    try:
        yield
    except (UnusableCheckpoint, UnusableDataset) as unusable:
        print_note(f"{unusable.code}: {unusable.detail}")
        raise typer.Exit(exit_codes.REFUSED) from None


def _lines(fact: Any) -> list[str]:
    """A fact in words; each warning, and each split, on a line of its own."""
    if isinstance(fact, list):
        return [str(one) for one in fact]
    if isinstance(fact, Mapping) and any(isinstance(one, Mapping) for one in fact.values()):
        return [f"{name}: {_lines(one)[0]}" for name, one in fact.items()]
    if isinstance(fact, Mapping):
        return [", ".join(f"{name} {value}" for name, value in fact.items())]
    return ["-" if fact is None else str(fact)]


def _facts(path: Path, begin: Begin) -> dict[str, Any] | None:
    """Describe a file or a folder, judged by its content and not by its name; None: captions."""
    found = foreign.of_path(path)
    if found is None and not path.exists():
        raise RequestRefused(f"found nothing at {path}")
    if is_package(path):
        begin("the model, as a service's worker opens it")
        return file_facts.describe_package(path)
    serves = None if found is None else found.serves
    if serves == foreign.CHECKPOINT or (found is None and path.suffix == ".safetensors"):
        if columns_header.is_columns_file(path):
            return _columns_facts(path)
        is_of_plugin = model_formats.detect_format(path) == "plugin"
        return (
            file_facts.describe_plugin_checkpoint(path)
            if is_of_plugin
            else file_facts.describe_checkpoint(path)
        )
    if serves == foreign.BUNDLE:
        begin("captions and files")
        held = file_facts.add_feature_facts(
            file_facts.describe_bundle(path), path, begin("features")
        )
        return held | _decoded(path, held["splits"], begin)
    if path.is_file() and captions.looks_like_captions(path):
        return None
    what, do = _unfit(path, found)
    expected = f"captions, {foreign.CHECKPOINT}, or {foreign.BUNDLE}"
    raise RequestRefused(f"expected {expected}; found {what}: {do}")


def _unfit(path: Path, found: foreign.Format | None) -> tuple[str, str]:
    if path.is_file() and path.stat().st_size == 0:
        return "an empty file", "was it written to its end?"
    if found is None:
        return "a file of no known format", "deploy/guide/file-formats.md has the formats"
    if path.is_file():
        with path.open("rb") as stream:
            if stream.read(len(_GZIP)) == _GZIP:
                return "a file packed by gzip", _UNPACK
    return found.what, found.do


def _columns_facts(path: Path) -> dict[str, Any]:
    found = columns_values.validate_columns(path)
    return {
        _OF: found.model,
        "tokenizer": found.tokenizer,
        "images": len(found.images),
        "references": found.references,
        "tokens": found.tokens,
        **({} if found.pieces is None else {"pieces": found.pieces, "words": found.words}),
        "vocabulary_size": None if found.vocabulary is None else len(found.vocabulary),
    }


def _fitting(path: Path, source: DatasetSource) -> dict[str, Any]:
    """Raise if columns are not of the images and references of the source, in order."""
    different = columns_values.find_split_difference(path, source.items, len(source.items))
    if different is not None:
        raise RequestRefused(different)
    return {"split": f"all of {source}"}


def _decoded(path: Path, splits: Mapping[str, Mapping[str, int]], begin: Begin) -> dict[str, Any]:
    """Raise if a picture cannot be decoded, as a service's worker would when it is scored."""
    from workers.offline import bundle_folders

    with_pictures = [name for name, counts in splits.items() if counts.get("pictures")]
    if not with_pictures:
        return {}
    try:
        sandbox = settings.load_settings().sandbox
        bundle_folders.check_pictures_decode(path, with_pictures, sandbox, begin("pictures"))
    except SandboxUnavailable as unavailable:
        return file_facts.describe_unseen(
            "captions and features are right; the pictures", unavailable
        )
    return {}
