"""Files of a command's targets: checkpoints and captions, named by files, folders and patterns."""

import glob
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from prescore import foreign
from prescore.cli.run_ids import is_run_id
from prescore.errors import InvalidArgument
from prescore.files import captions, models
from prescore.files.bodies import translate_read_errors

MOST = 1000  # files of one command
SUFFIX = ".safetensors"
_NUMBER = re.compile("[0-9]+")


def expand_targets(targets: Sequence[str]) -> list[str]:
    """Name each file once: for a folder its checkpoints, for a pattern the files that match."""
    files = list(dict.fromkeys(file for target in targets for file in _expand_target(target)))
    if len(files) > MOST:
        raise InvalidArgument(f"expected at most {MOST} files, found {len(files)}: name a part")
    return files


def check_files(targets: Sequence[str]) -> None:
    """Raise for the first file that can be known to be wrong, before any is sent."""
    for target in targets:
        if target.startswith("sha256:") or is_run_id(target):
            continue
        if captions.looks_like_captions(Path(target)):
            captions.read_captions(Path(target))
        else:
            models.check_model(Path(target))


def name_files(targets: Sequence[str]) -> list[str]:
    """Give short names of files, or where some have the same name, their paths in the folder that
    all are in; nothing for digests.
    """
    files = [Path(one).absolute() for one in targets if not one.startswith("sha256:")]
    shared = Path(os.path.commonpath([one.parent for one in files])) if files else Path()
    if len({one.name for one in files}) == len(files):
        names = {str(one): one.name for one in files}
    else:
        names = {str(one): str(one.relative_to(shared)) for one in files}
    return [names.get(str(Path(one).absolute()), "") for one in targets]


def read_step(target: str) -> str:
    """Read the last number in a file's name."""
    numbers = _NUMBER.findall(Path(target).stem)
    if target.startswith("sha256:") or not numbers:
        raise InvalidArgument(
            f"--step-from-name: expected a number in the name, as in epoch-08{SUFFIX}, "
            f"found {Path(target).name!r:.100}"
        )
    return str(int(numbers[-1]))


def _expand_target(target: str) -> Iterator[str]:
    path = Path(target)
    with translate_read_errors(path):
        if path.is_dir():
            yield from _list_checkpoints(path) or _list_models_inside(path) or [target]
        elif glob.has_magic(target) and not path.exists():
            yield from _match_pattern(target)
        else:
            yield target


def _list_checkpoints(folder: Path) -> list[str]:
    """List a folder's checkpoints; none where it is another program's folder, or a dataset."""
    format_ = foreign.of_path(folder)
    if format_ is None or format_.what != "a folder with safetensors files":
        return []
    names = [str(path) for path in folder.iterdir() if path.suffix == SUFFIX and path.is_file()]
    return sorted(names, key=_order_naturally)


def _list_models_inside(folder: Path) -> list[str]:
    """List the models in a folder's folders, as a trainer saves checkpoints; none where the folder
    is a model itself, or another program's.
    """
    format_ = foreign.of_path(folder)
    if format_ is None or format_.what != "a folder":
        return []
    inner = sorted(map(str, filter(Path.is_dir, folder.iterdir())), key=_order_naturally)
    return [model for name in inner for model in _list_models(name)]


def _list_models(path: str) -> list[str]:
    """Name a file, a folder that is a model, or else the folder's checkpoints."""
    if Path(path).is_dir():
        return [path] if models.is_package(Path(path)) else _list_checkpoints(Path(path))
    return [path] if Path(path).is_file() else []


def _match_pattern(pattern: str) -> list[str]:
    # As the shell does; Path.glob takes no absolute pattern.
    paths = sorted(glob.glob(pattern), key=_order_naturally)  # noqa: PTH207
    matches = [model for path in paths for model in _list_models(path)]
    if not matches:
        raise InvalidArgument(
            f"expected files, or folders of models, that match {pattern!r:.200}, found none"
        )
    return matches


def _order_naturally(name: str) -> list[tuple[int, str]]:
    """Give a key by which epoch-9 stands before epoch-10."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split("([0-9]+)", name)
    ]
