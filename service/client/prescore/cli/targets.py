"""What is meant by the targets of a command: files, folders, patterns, digests and runs."""

import glob
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from prescore.errors import InvalidArgument
from prescore.files import captions, foreign, models
from prescore.files.reading import readable

MOST = 1000  # files of one command
SUFFIX = ".safetensors"
_NUMBER = re.compile("[0-9]+")


def is_run(target: str) -> bool:
    return target.startswith("ev_") and not Path(target).exists()


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
            yield from _in_folder(path) or [target]
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


def _matching(pattern: str) -> list[str]:
    # As the shell does; Path.glob takes no absolute pattern.
    found = [path for path in glob.glob(pattern) if Path(path).is_file()]  # noqa: PTH207
    if not found:
        raise InvalidArgument(f"expected files that match {pattern!r:.200}, found none")
    return sorted(found, key=_natural)


def _natural(name: str) -> list[tuple[int, str]]:
    """An order in which epoch-9 stands before epoch-10."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split("([0-9]+)", name)
    ]
