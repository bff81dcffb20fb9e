"""What is meant by the targets of a command: files, folders, patterns, digests and runs."""

import glob
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from prescore import foreign
from prescore.cli import console, text
from prescore.client import Client
from prescore.errors import InvalidArgument
from prescore.files import captions, models
from prescore.files.reading import readable
from prescore.plain_text import quoted

MOST = 1000  # files of one command
SUFFIX = ".safetensors"
MOST_SHOWN = 5  # runs with a label
_NUMBER = re.compile("[0-9]+")


def is_run(target: str) -> bool:
    return target.startswith("ev_") and not Path(target).exists()


def is_run_or_label(target: str) -> bool:
    is_label = "=" in target and "/" not in target and not Path(target).exists()
    return is_label or is_run(target)


def expanded(given: Sequence[str]) -> list[str]:
    """Each target once: for a folder its checkpoints, for a pattern the files that match."""
    found = list(dict.fromkeys(target for one in given for target in _meant(one)))
    if len(found) > MOST:
        raise InvalidArgument(f"expected at most {MOST} files, found {len(found)}: name a part")
    return found


def check(targets: Sequence[str]) -> None:
    """Raise for the first file that can be known to be wrong, before any is sent."""
    for target in targets:
        if target.startswith("sha256:") or is_run(target):
            continue
        if captions.looks_like_captions(Path(target)):
            captions.read(Path(target))
        else:
            models.check(Path(target))


def ids_of(client: Client, *given: str) -> list[str]:
    """The ids of runs; a label stands for the only run that has it. Raises, with the commands to
    give, for files and digests in the place of runs.
    """
    others = [one for one in given if one.startswith("sha256:") or Path(one).exists()]
    if others:
        each = [
            f"  prescore submit {shlex.quote(one)} --dataset NAME/SPLIT --wait" for one in others
        ]
        lines = [
            f"expected a run's id, ev_..., found {quoted(others[0])!s:.200}",
            "Submit first what has no id yet, and name the id that is printed:",
            *map(quoted, each),
        ]
        raise InvalidArgument("\n".join(lines))
    return [_with_label(client, one) if "=" in one else one for one in given]


def _with_label(client: Client, label: str) -> str:
    labels = console.labels([label])
    runs = list(islice(client.evaluations(labels=labels, page_size=MOST_SHOWN), MOST_SHOWN))
    if not runs:
        console.suggest_label(client, "", labels)
        raise InvalidArgument(f"no run has the label {label!r:.100}; `prescore list` shows labels")
    if len(runs) > 1:
        rows = [
            (
                *(one.id, one.status, str(one.dataset), text.moment(one.created_at)),
                text.labels(one.labels),
            )
            for one in runs
        ]
        lines = [
            f"expected a run's id, or a label that one run has; several have {label!r:.100}:",
            *text.aligned(rows, indent="  "),
            quoted(f"All of them: prescore list --label {shlex.quote(label)}"),
        ]
        raise InvalidArgument("\n".join(lines))
    console.say(f"{label} is {runs[0].id}, {runs[0].dataset}")
    return runs[0].id


def names(targets: Sequence[str]) -> list[str]:
    """What files are called: by their names, or where some have the same, by their paths in the
    folder that all are in; of digests nothing.
    """
    files = [Path(one).absolute() for one in targets if not one.startswith("sha256:")]
    shared = Path(os.path.commonpath([one.parent for one in files])) if files else Path()
    if len({one.name for one in files}) == len(files):
        called = {str(one): one.name for one in files}
    else:
        called = {str(one): str(one.relative_to(shared)) for one in files}
    return [called.get(str(Path(one).absolute()), "") for one in targets]


def step(target: str) -> str:
    """The last number in a file's name."""
    numbers = _NUMBER.findall(Path(target).stem)
    if target.startswith("sha256:") or not numbers:
        raise InvalidArgument(
            f"--step-from-name: expected a number in the name, as in epoch-08{SUFFIX}, "
            f"found {Path(target).name!r:.100}"
        )
    return str(int(numbers[-1]))


def _meant(target: str) -> Iterator[str]:
    path = Path(target)
    with readable(path):
        if path.is_dir():
            yield from _in_folder(path) or _folders_in(path) or [target]
        elif glob.has_magic(target) and not path.exists():
            yield from _matching(target)
        else:
            yield target


def _in_folder(folder: Path) -> list[str]:
    """Its checkpoints; none where it is another program's folder, or a dataset."""
    found = foreign.of_path(folder)
    if found is None or found.what != "a folder with safetensors files":
        return []
    names = [str(path) for path in folder.iterdir() if path.suffix == SUFFIX and path.is_file()]
    return sorted(names, key=_natural)


def _folders_in(folder: Path) -> list[str]:
    """The models in a folder's folders, as a trainer saves checkpoints; none where the folder is a
    model itself, or another program's.
    """
    found = foreign.of_path(folder)
    if found is None or found.what != "a folder":
        return []
    inner = sorted(map(str, filter(Path.is_dir, folder.iterdir())), key=_natural)
    return [one for name in inner for one in _models_in(name)]


def _models_in(folder: str) -> list[str]:
    """The folder, if it is a model, or else its checkpoints."""
    return [folder] if models.is_package(Path(folder)) else _in_folder(Path(folder))


def _matching(pattern: str) -> list[str]:
    # As the shell does; Path.glob takes no absolute pattern.
    there = sorted(glob.glob(pattern), key=_natural)  # noqa: PTH207
    found = [one for path in there for one in _of_match(path)]
    if not found:
        raise InvalidArgument(
            f"expected files, or folders of models, that match {pattern!r:.200}, found none"
        )
    return found


def _of_match(path: str) -> list[str]:
    if Path(path).is_dir():
        return _models_in(path)
    return [path] if Path(path).is_file() else []


def _natural(name: str) -> list[tuple[int, str]]:
    """An order in which epoch-9 stands before epoch-10."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split("([0-9]+)", name)
    ]
