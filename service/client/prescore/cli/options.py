"""Options that commands share, each spelled once, in groups that go together."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from prescore.client import DEFAULT_URL, PATIENCE_SECONDS
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
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@dataclass(frozen=True, kw_only=True)
class Connection:
    """Where the service is, and how to get in."""

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
        typer.Option("--patience", min=0, help="Seconds to go on trying while there is no answer."),
    ] = PATIENCE_SECONDS


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """What is computed, and how."""

    pregen: Annotated[
        list[str] | None, typer.Option(help="all, none, or names by commas. Default: all.")
    ] = None
    postgen: Annotated[
        list[str] | None, typer.Option(help="none, or names by commas. Default: below.")
    ] = None
    beam: Annotated[int | None, typer.Option(min=1, help="Width of the beam; 1 is greedy.")] = None
    min_words: Annotated[int | None, typer.Option(min=0, help="Of a caption.")] = None
    max_words: Annotated[int | None, typer.Option(min=1, help="Of a caption.")] = None
    unk: Annotated[bool | None, typer.Option(help="May captions hold the unknown word?")] = None
    tokenizer: Annotated[Tokenizer | None, typer.Option(help="Of captions and references.")] = None
    subset: Annotated[bool, typer.Option("--subset", help="Captions for a part will do.")] = False
    idf: Annotated[
        Idf | None, typer.Option(help="Of CIDEr: from the whole split, or the answered part.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Judging:
    """What gates mean, and when they are decided."""

    baseline: Annotated[
        str | None,
        typer.Option(help="What `baseline` in gates means: NAME=VALUE (a label), ev_... or best."),
    ] = None
    trust: Annotated[
        list[str] | None,
        typer.Option(help="A metric that may gate though a constant sentence beats people in it."),
    ] = None
    until: Annotated[
        Until | None, typer.Option(help="verdict: end as soon as all gates are decided.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class Run:
    """What holds of the run as a whole."""

    label: Annotated[
        list[str] | None, typer.Option("--label", help="NAME=VALUE, to find it by.")
    ] = None
    deadline: Annotated[int | None, typer.Option(min=1, help="Seconds that it may take.")] = None


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command as Typer reads it: the fields of a group stand where the group stood."""
    written = inspect.signature(command).parameters
    groups = {name: each.annotation for name, each in written.items() if _is_group(each)}

    @wraps(command)
    def spread_out(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        command(**given)

    options = [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for name, parameter in written.items()
        for each in (_fields(groups[name]) if name in groups else [parameter])
    ]
    spread_out.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined]
    spread_out.__annotations__ = {each.name: each.annotation for each in options}
    return spread_out


def _is_group(parameter: inspect.Parameter) -> bool:
    return is_dataclass(parameter.annotation)


def _fields(group: type) -> Iterable[inspect.Parameter]:
    return inspect.signature(group).parameters.values()
