"""A checkpoint as the bytes that are sent: a file, or the files of a model as a tar."""

import logging
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from prescore import plain_text
from prescore.files import foreign, tars
from prescore.files.reading import Body, check_checkpoint, file_body, readable

MARKS = ("map.toml", "prescore.json")  # one of these tells that files are those of a model
_SENT = (".json", ".toml", ".safetensors", ".pt", ".pth", ".bin", ".ckpt", ".onnx")
_ZIP = b"PK"

_log = logging.getLogger("prescore")


def check(path: Path) -> None:
    """Raise for what is known to be neither a checkpoint nor a package of one."""
    if not is_package(path):
        check_checkpoint(path)


def is_package(path: Path) -> bool:
    with readable(path):
        names = _names(path)
    return any(PurePosixPath(name).name in MARKS for name in names)


def body(path: Path) -> Body:
    check(path)
    if not path.is_dir():
        return file_body(path)
    names = [each.name for each in path.iterdir() if each.is_file()]
    sent = [name for name in names if PurePosixPath(name).suffix in _SENT]
    if others := sorted({*names} - {*sent}):
        _log.warning("left out of the package: %s", plain_text.quoted(", ".join(others[:5])))
    return tars.body({name: path / name for name in sent})


def _names(path: Path) -> Iterable[str]:
    """The names of a folder's, a tar's or a zip's files; none of another file."""
    if path.is_dir():
        return [each.name for each in path.iterdir()]
    with path.open("rb") as stream:
        is_zip = stream.read(len(_ZIP)) == _ZIP
    found = foreign.of_path(path)
    try:
        if is_zip:
            with zipfile.ZipFile(path) as archive:
                return archive.namelist()
        if found is not None and found.is_package:
            with tarfile.open(path, "r:") as archive:
                return archive.getnames()
    except (tarfile.TarError, zipfile.BadZipFile, ValueError):
        pass
    return []
