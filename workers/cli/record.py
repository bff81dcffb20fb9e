"""`prescore record`: compute columns and captions of a model that stays on this machine."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prescore import exit_codes
from prescore.cli.options import InferenceOptions, expand_groups, file_to_write
from service.contract import settings
from service.contract.column_options import ColumnOptions
from service.contract.errors import RequestRefused
from service.contract.wording import count_noun
from workers.cli.console import print_lines, print_note, report_errors, show_progress_steps
from workers.offline.sources import find_local_source

if TYPE_CHECKING:
    from workers.offline.recordings import ModelRecording


@expand_groups
def record(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A model as for `prescore submit`, but no adapter; or the name of one that is in "
            "the cache of Hugging Face.",
        ),
    ],
    *,
    dataset: Annotated[
        str,
        typer.Option(
            metavar="DATASET[/SPLIT]", help="A folder or a tar, with its pictures or features."
        ),
    ],
    split: Annotated[
        str | None, typer.Option(help="Default: the only split, or `test`.", show_default=False)
    ] = None,
    out: Annotated[Path, file_to_write("The columns to write.", "--out")],
    captions: Annotated[
        Path | None,
        file_to_write("The captions to write. Default: beside F, *.captions.json.", "--captions"),
    ] = None,
    no_captions: Annotated[
        bool, typer.Option("--no-captions", help="Write columns alone.")
    ] = False,
    inference: InferenceOptions,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda:N.")] = None,
) -> None:
    """Compute columns and captions of a model that stays on this machine.

        prescore record llava/ --dataset mine/test --out llava.columns.safetensors
        prescore submit --columns llava.columns.safetensors --dataset mine/test

    Nothing is sent or downloaded. The files give the scores of the same model, uploaded.
    Where tokens are pieces of words, the columns have both: `prescore submit --units`
    chooses. Parts of 128 images are stored in the folder F.parts until the end: after
    Ctrl-C the same command continues.

    Exit 0: written. 2: usage, or refused. 3: it failed. 130: Ctrl-C.
    """
    from workers.jobs.toolbox import Toolbox
    from workers.offline import recordings

    with report_errors(), show_progress_steps() as steps:
        if no_captions and (captions is not None or inference.decoding):
            raise RequestRefused("--no-captions: expected it without --captions and a search")
        recordings.check_search(inference.decoding)
        source = find_local_source(dataset if split is None else f"{dataset.rstrip('/')}/{split}")
        found = recordings.find_model(model)
        options = ColumnOptions(precision=inference.precision or "fp32", prompt=inference.prompt)
        toolbox = Toolbox.of(settings.load_settings())
        with closing(toolbox if device is None else replace(toolbox, device=device)) as tools:
            name = found.resolve().name if found == Path(model) else model
            parts = out.with_name(f"{out.name}.parts")
            recording = recordings.ModelRecording(name, found, source, options, parts, tools)
            with _tell_of_parts(recording):
                warning = recording.record_columns(out, steps.begin("columns"))
                written = [out]
                if warning is not None:
                    steps.tell(f"warning: {warning}")
                if not no_captions:
                    written.append(captions or _name_captions(out))
                    recording.record_captions(
                        written[1], inference.decoding, steps.begin("captions")
                    )
        shutil.rmtree(parts)
    print_lines(*(f"{path}: {count_noun(len(source.items), 'image')}" for path in written))


def _name_captions(out: Path) -> Path:
    name = out.name.removesuffix(".safetensors").removesuffix(".columns")
    return out.with_name(f"{name}.captions.json")


@contextmanager
def _tell_of_parts(recording: "ModelRecording") -> Iterator[None]:
    """Say at Ctrl-C what stays for the next time."""
    try:
        yield
    except KeyboardInterrupt:
        done = count_noun(len(recording.list_parts()), "part")
        print_note(f"stopped: {done} in {recording.parts}; the same command continues")
        raise typer.Exit(exit_codes.INTERRUPTED) from None
