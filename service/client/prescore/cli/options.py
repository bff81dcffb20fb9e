"""Options that several commands share, in groups."""

import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore import exit_codes, plain_text
from prescore.client import DEFAULT_URL, PATIENCE_SECONDS
from prescore.models.choices import Idf, IfNoBaseline, Precision, Tokenizer, Units, Until


def file_to_write(help: str, *flags: str, metavar: str | None = "F") -> Any:  # noqa: A002
    """Build an option that names a file to write: a wrong place is refused as soon as it is named,
    and so before minutes of work.
    """
    return typer.Option(*flags, help=help, metavar=metavar, callback=check_file_to_write)


def check_file_to_write(path: Path | None) -> Path | None:
    """Refuse a place where no file can be written."""
    _refuse("" if path is None else _find_obstacle(path, _find_file_obstacle))
    return path


def check_folder_to_write(path: Path, advice: str = "") -> Path:
    """Refuse a place where no folder can be written; the `advice` stands after the reason."""
    refusal = _find_obstacle(path, _find_folder_obstacle)
    _refuse(f"refused: {refusal}{advice}" if refusal else "")
    return path


def _refuse(refusal: str) -> None:
    if refusal:
        typer.echo(plain_text.line(refusal), err=True)
        raise typer.Exit(exit_codes.REFUSED)


def _find_obstacle(path: Path, find: Callable[[Path], str]) -> str:
    try:
        return find(path)
    except OSError as error:  # such as a name that is too long
        return f"{path} cannot be written: {error.strerror}"


def _find_folder_obstacle(path: Path) -> str:
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    if not there.is_dir():
        return f"expected a folder to write, found the file {there}"
    if not os.access(there, os.W_OK):
        return f"expected a folder that may be written, found {there}"
    return ""


def _find_file_obstacle(path: Path) -> str:
    if path.is_dir():
        return f"expected a file to write, found the folder {path}: add a name to it"
    if not path.parent.is_dir():
        return f"expected a folder for {path.name}, found none at {path.parent}"
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        return f"expected a file that may be written, found {path}"
    return ""


_TARGET: Any = typer.Argument(
    metavar="CHECKPOINT|CAPTIONS",
    help="A .safetensors file, the sha256:... of one that the service has, or captions: "
    'a JSON list of {"image" or "image_id", "caption"}, pycocoevalcap\'s dictionary, JSON '
    "Lines, CSV.",
)
Target = Annotated[str | None, _TARGET]
OneTarget = Annotated[str, _TARGET]
Targets = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="CHECKPOINT|CAPTIONS...",
        help="Files, folders of checkpoints, quoted patterns, the sha256:... of checkpoints that "
        'the service has. Captions: a JSON list of {"image" or "image_id", "caption"}, '
        "pycocoevalcap's dictionary, JSON Lines, CSV.",
    ),
]
StepFromName = Annotated[
    bool,
    typer.Option(
        "--step-from-name", help="Label each file's run with the last number in its name: step=8."
    ),
]
_SPLIT = "NAME/SPLIT or NAME@VERSION/SPLIT; the only split need not be named."
Split = Annotated[str, typer.Option("--dataset", help=_SPLIT)]
_LOCAL_SPLIT = (
    "A folder or a tar on this machine, or a dataset of a service. Default: the only split, or "
    "`test`."
)
LocalSplit = Annotated[str, typer.Option("--dataset", metavar="DATASET[/SPLIT]", help=_LOCAL_SPLIT)]
LocalWholeSplit = Annotated[str, typer.Argument(metavar="DATASET[/SPLIT]", help=_LOCAL_SPLIT)]
DECODING = ("beam", "min_words", "max_words", "unk", "length_power")
USUAL = "bleu,rouge_l,cider_d,meteor"  # metrics
WholeSplit = Annotated[str, typer.Argument(metavar="DATASET/SPLIT", help=_SPLIT)]
Metrics = Annotated[
    list[str] | None, typer.Option(help="Names, separated by commas; may be given many times.")
]
LabelFilter = Annotated[
    list[str] | None,
    typer.Option(help="NAME=VALUE: only runs with this label; may be given many times."),
]
MostRuns = Annotated[int, typer.Option(min=1, help="Show at most this many runs.")]
WordTokenizer = Annotated[
    Tokenizer | None, typer.Option(help="Tokenizer of captions and references.")
]
Subset = Annotated[bool, typer.Option("--subset", help="Accept captions for a part of the split.")]
Table = Annotated[Path | None, file_to_write("Write the table to a CSV file too.", "--csv")]
Compute = Annotated[
    bool, typer.Option("--compute", help="Let the service compute it first, and wait.")
]
Timeout = Annotated[
    float | None,
    typer.Option(min=0, help="Seconds to wait; then it goes on in the service."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Options by which the service is reached."""

    url: Annotated[
        str | None,
        typer.Option(
            "--url", envvar="PRESCORE_URL", show_default=DEFAULT_URL, help="Where the service is."
        ),
    ] = None
    key_file: Annotated[
        Path | None,
        typer.Option("--key-file", help="A file with the key, instead of PRESCORE_KEY."),
    ] = None
    patience: Annotated[
        float,
        typer.Option(
            "--patience", min=0, help="Seconds to keep trying while the service does not answer."
        ),
    ] = PATIENCE_SECONDS
    here: Annotated[
        bool,
        typer.Option("--here", help="Run the service in this process, for this command alone."),
    ] = False
    home: Annotated[
        Path | None,
        typer.Option(help="The folder of all data of --here. Default: PRESCORE_HOME."),
    ] = None


@dataclass(frozen=True, kw_only=True)
class OutputOptions:
    """Outputs of somebody's own code, in the place of a checkpoint."""

    columns: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|DIGEST",
            help="File of prescore.Recorder for a model that no service can run, in the place of "
            "a checkpoint; or the sha256:... of columns that the service has.",
        ),
    ] = None
    captions: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The model's captions: beside --columns; alone, the same as an argument.",
        ),
    ] = None
    units: Annotated[
        Units | None,
        typer.Option(
            help="Where the tokens of a model, or of --columns, are pieces of words: what pre-gen "
            "scores are made of. Default: words."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class InferenceOptions:
    """Options of what a model computes: probabilities of references, captions by a search."""

    precision: Annotated[
        Precision | None,
        typer.Option(help="Of pre-gen scores; bf16 may be faster, and is told in the signature."),
    ] = None
    prompt: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="What the model reads before a caption, if it reads a prompt. Default: the "
            "checkpoint's own.",
        ),
    ] = None
    beam: Annotated[int | None, typer.Option(min=1, help="Beam width; 1 is greedy decoding.")] = (
        None
    )
    min_words: Annotated[
        int | None, typer.Option(min=0, help="Words that a caption has at least.")
    ] = None
    max_words: Annotated[
        int | None, typer.Option(min=1, help="Words that a caption has at most.")
    ] = None
    unk: Annotated[bool | None, typer.Option(help="Allow the unknown word in captions.")] = None
    length_power: Annotated[
        float | None,
        typer.Option(min=0, max=5, help="Length normalisation; 1 compares means over words."),
    ] = None

    @property
    def decoding(self) -> dict[str, Any]:
        """The options of the search that are given, by the names of the request's fields."""
        found = {name: getattr(self, name) for name in DECODING}
        return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(InferenceOptions):
    """The scores that are computed, and how; most are called as the request's fields are."""

    metrics: Annotated[
        list[str] | None,
        typer.Option(
            help="These metrics and no others, pre-gen or post-gen: names separated by commas; "
            "without --pregen and --postgen."
        ),
    ] = None
    pregen: Annotated[
        list[str] | None,
        typer.Option(help="all, none, or names separated by commas. Default: all."),
    ] = None
    postgen: Annotated[
        list[str] | None,
        typer.Option(
            help="none, or names separated by commas. Default: bleu, rouge_l, cider_d and meteor."
        ),
    ] = None
    base: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The registered base model of an adapter. Default: the one that its "
            "adapter_config.json names.",
        ),
    ] = None
    tokenizer: WordTokenizer = None
    subset: Subset = False
    idf: Annotated[
        Idf | None,
        typer.Option(
            help="CIDEr's document frequencies: of the whole split, or of the images with captions."
        ),
    ] = None


@dataclass(frozen=True, kw_only=True)
class GateOptions:
    """The decision of gates; all are called as the request's fields are."""

    baseline: Annotated[
        str | None,
        typer.Option(help="What `baseline` in gates means: NAME=VALUE (a label), ev_... or best."),
    ] = None
    if_no_baseline: Annotated[
        IfNoBaseline | None,
        typer.Option(
            help="The verdict of a gate that has no baseline yet, as on the first run of a branch. "
            "Default: undecided."
        ),
    ] = None
    trust: Annotated[
        list[str] | None,
        typer.Option(
            help="Allow gates on a metric in which a constant sentence beats human captions."
        ),
    ] = None
    until: Annotated[
        Until | None, typer.Option(help="verdict: end as soon as all gates are decided.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Facts of the run as a whole."""

    label: Annotated[
        list[str] | None,
        typer.Option("--label", help="NAME=VALUE, to find the run by; may be given many times."),
    ] = None
    deadline: Annotated[int | None, typer.Option(min=1, help="Seconds that the run may take.")] = (
        None
    )


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Replace each group of options in a command's signature by its fields, for Typer."""
    written = inspect.signature(command).parameters
    groups: dict[str, Any] = {
        name: each.annotation for name, each in written.items() if is_dataclass(each.annotation)
    }

    @wraps(command)
    def with_groups(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    options = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in written.items()
        for each in (
            inspect.signature(groups[name]).parameters.values() if name in groups else [parameter]
        )
    ]
    with_groups.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    with_groups.__annotations__ = {each.name: each.annotation for each in options}
    return with_groups
